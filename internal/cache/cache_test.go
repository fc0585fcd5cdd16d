package cache_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/cache/trim"
)

func TestNodeIsGoneOnlyIfTheAPIServerSaysSo(t *testing.T) {
	t.Parallel()
	types := runtime.NewScheme()
	if err := corev1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	reader := func(names ...string) client.Reader {
		objects := make([]client.Object, len(names))
		for i, name := range names {
			objects[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		return fake.NewClientBuilder().WithScheme(types).WithObjects(objects...).Build()
	}
	for name, tc := range map[string]struct {
		cached, live []string
		found        bool
	}{
		"cached":           {cached: []string{"a"}, live: []string{"a"}, found: true},
		"not cached yet":   {live: []string{"a"}, found: true},
		"only in cache":    {cached: []string{"a"}, found: true},
		"another node":     {cached: []string{"b"}, live: []string{"b"}},
		"no node anywhere": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, err := cache.NewNodes(reader(tc.cached...), reader(tc.live...)).Find(t.Context(), "a")
			if err != nil || (node != nil) != tc.found {
				t.Errorf("found %v, error %v", node, err)
			}
		})
	}
}

// Users may create pods with any label, name and owner in their namespaces.
func TestDaemonsAreKnownByNamespaceLabelAndName(t *testing.T) {
	t.Parallel()
	daemons := cache.Daemons{Refit: "repairs", Kruise: "openkruise"}
	ofRefit, ofKruise := map[string]string{"app.kubernetes.io/name": "refit-daemon"}, map[string]string{"control-plane": "daemon"}
	for name, tc := range map[string]struct {
		pod           metav1.ObjectMeta
		refit, kruise bool
	}{
		"refit-daemon":            {pod: metav1.ObjectMeta{Namespace: "repairs", Name: "refit-daemon-x", Labels: ofRefit}, refit: true},
		"kruise-daemon":           {pod: metav1.ObjectMeta{Namespace: "openkruise", Name: "kruise-daemon-x", Labels: ofKruise}, kruise: true},
		"refit-daemon of a user":  {pod: metav1.ObjectMeta{Namespace: "shop", Name: "refit-daemon-x", Labels: ofRefit}},
		"kruise-daemon of a user": {pod: metav1.ObjectMeta{Namespace: "shop", Name: "kruise-daemon-x", Labels: ofKruise}},
		"each where the other is": {pod: metav1.ObjectMeta{Namespace: "openkruise", Name: "refit-daemon-x", Labels: ofRefit}},
		"another daemon":          {pod: metav1.ObjectMeta{Namespace: "openkruise", Name: "node-daemon-x", Labels: ofKruise}},
		"only the name":           {pod: metav1.ObjectMeta{Namespace: "openkruise", Name: "kruise-daemon-x"}},
		"program of Refit":        {pod: metav1.ObjectMeta{Namespace: "repairs", Name: "refit-manager-x", Labels: map[string]string{"app.kubernetes.io/name": "refit-manager"}}},
		"pod without label":       {pod: metav1.ObjectMeta{Namespace: "repairs", Name: "refit-daemon-x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := trim.NewPods().Of(&corev1.Pod{ObjectMeta: tc.pod})
			if refit, kruise := daemons.HasRefit(pod), daemons.HasKruise(pod); refit != tc.refit || kruise != tc.kruise {
				t.Errorf("of refit-daemon %t, of kruise-daemon %t", refit, kruise)
			}
			if got := daemons.Has(pod); got != (tc.refit || tc.kruise) {
				t.Errorf("of a daemon %t", got)
			}
		})
	}
}
