package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func onNode(name, uid string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)}}
	p.Spec.NodeName = "node-1"
	return p
}

func TestPodsThatAreLeftOutAreThoseOfTheLastTime(t *testing.T) {
	t.Parallel()
	a, b, again := onNode("a", "1"), onNode("b", "2"), onNode("b", "3")
	var o omittedPods
	for i, tc := range []struct {
		pods           []*corev1.Pod
		added, changed string
	}{
		{nil, "", ""},
		{[]*corev1.Pod{a, b}, "1 2", "shop/a shop/b"},
		{[]*corev1.Pod{b, a}, "", ""},
		{[]*corev1.Pod{a, again}, "3", "shop/b shop/b"},
		{[]*corev1.Pod{again}, "", "shop/a"},
		{nil, "", "shop/b"},
	} {
		if known := o.knows("node-1"); known != (i > 0) {
			t.Errorf("%d: known %t before", i, known)
		}
		added, changed := o.set("node-1", tc.pods)
		var uids, keys []string
		for _, p := range added {
			uids = append(uids, string(p.UID))
		}
		for _, key := range changed {
			keys = append(keys, key.String())
		}
		slices.Sort(keys)
		if fmt.Sprint(strings.Join(uids, " "), ", ", strings.Join(keys, " ")) != tc.added+", "+tc.changed {
			t.Errorf("%d: added %q, changed %q", i, uids, keys)
		}
		for _, p := range []*corev1.Pod{a, b, again} {
			if want := slices.Contains(tc.pods, p); o.has(p) != want || o.all()[p.UID] != want {
				t.Errorf("%d: %s is left out: %t", i, p.UID, !want)
			}
		}
		if o.any("node-1") != (len(tc.pods) > 0) || o.any("node-2") {
			t.Errorf("%d: %v", i, o.all())
		}
	}
	o.set("node-1", []*corev1.Pod{a})
	o.forget("node-1")
	if o.knows("node-1") || o.has(a) {
		t.Error("a node that is gone is known")
	}
}
