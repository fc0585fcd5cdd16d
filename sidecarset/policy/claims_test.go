package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
)

const claimed = "metadata: {name: web, namespace: shop, annotations: {kruise.io/sidecarset-injected-list: log}}\n"

// One annotation kept the sidecar out, also with failurePolicy Fail. What a pod says of itself changes nothing of what it gets.
func TestAPodThatSaysItIsInjectedGetsTheSidecarsOfThePolicy(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, simple)
	compiled := compile(t, set, time.Now())
	const app = `{name: app, image: "a:1"}`
	clean := apply(t, compiled.Policy, set, podOf(t, "metadata: {name: web, namespace: shop}\nspec: {containers: ["+app+"]}"))
	for name, manifest := range map[string]string{
		"the annotation alone":   claimed + "spec: {containers: [" + app + "]}",
		"skipped":                `metadata: {name: web, annotations: {sidecarset.refit.dev/skipped: '{"log":"no"}', sidecarset.refit.dev/checked: "log,-log"}}` + "\nspec: {containers: [" + app + "]}",
		"a container of its own": claimed + "spec: {containers: [" + app + `, {name: agent, image: "agent:1", command: [sleep], env: [{name: IS_INJECTED, value: "true"}]}]}`,
		"in the other list":      claimed + "spec: {initContainers: [" + `{name: agent, image: "agent:1", env: [{name: IS_INJECTED, value: "true"}]}` + "], containers: [" + app + "]}",
		"an init container":      claimed + "spec: {initContainers: [" + `{name: first, image: "f:1", command: [evil], env: [{name: IS_INJECTED, value: "true"}]}` + "], containers: [" + app + "]}",
		"a volume of its own":    claimed + "spec: {volumes: [{name: spool, hostPath: {path: /}}], containers: [" + app + "]}",
		"all of the sidecars":    claimed + "spec: {containers: [" + `{name: back, image: "x:1", env: [{name: IS_INJECTED, value: "true"}]}, ` + app + `, {name: agent, image: "x:1", env: [{name: IS_INJECTED, value: "true"}]}]}`,
		"in another order":       claimed + "spec: {containers: [" + ownOf("agent", "back") + ", " + app + ", " + ownOf("native") + "], volumes: [{name: spool, hostPath: {path: /}}]}",
		"in both lists":          claimed + "spec: {initContainers: [" + ownOf("back", "first", "agent", "native") + "], containers: [" + ownOf("native", "back", "first") + ", " + app + ", " + ownOf("agent") + "]}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := apply(t, compiled.Policy, set, podOf(t, manifest))
			if !equality.Semantic.DeepEqual(got.Spec, clean.Spec) {
				t.Errorf("a pod without claims gets (-), this one (+):\n%s", cmp.Diff(clean.Spec, got.Spec))
			}
			if mine := annotation.Of(got, "log"); mine == nil || mine.Hash != revision.HashesOf(&set.Spec).Full || got.Annotations[v1beta1.AnnotationSidecarSetList] != "log" {
				t.Errorf("annotations %v", got.Annotations)
			}
		})
	}
	t.Run("nothing but the sidecars", func(t *testing.T) {
		t.Parallel()
		got := apply(t, compiled.Policy, set, podOf(t, claimed+`spec: {containers: [{name: agent, image: "x:1", env: [{name: IS_INJECTED, value: "true"}]}]}`))
		if len(got.Spec.Containers) != 2 || got.Spec.Containers[0].Image != "agent:1" {
			t.Errorf("containers %v", got.Spec.Containers)
		}
	})
	t.Run("a container that does not say that it was injected", func(t *testing.T) {
		t.Parallel()
		got := apply(t, compiled.Policy, set, podOf(t, claimed+"spec: {containers: [{name: agent, image: 'x:1'}]}"))
		if len(got.Spec.Containers) != 3 {
			t.Errorf("containers %v: the API server would not refuse them", got.Spec.Containers)
		}
	})
}

// ownOf returns containers with the names of sidecars that say that they were injected.
func ownOf(names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, "{name: "+name+`, image: "x:1", env: [{name: IS_INJECTED, value: "true"}]}`)
	}
	return strings.Join(list, ", ")
}

// Annotations that are no records are replaced, so that the pod's own record stays readable; records of others are kept.
func TestThePolicyWritesRecordsThatCanBeRead(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, simple)
	compiled := compile(t, set, time.Now())
	const entry = `{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"x","sidecarSetName":"abc","sidecarList":["a","b"],"controllerRevision":"abc-1"}`
	for name, tc := range map[string]struct {
		had  string
		kept bool // what it says of abc
	}{
		"nothing":            {"", false},
		"empty":              {"{}", false},
		"no JSON":            {"x}", false},
		"no object":          {`["a"]`, false},
		"not closed":         {`{"abc":` + entry, false},
		"a trailing comma":   {`{"abc":` + entry + `,}`, false},
		"two objects":        {`{"abc":` + entry + `}{}`, false},
		"text in a name":     {`{"a\"bc":"x"}`, false},
		"too long":           {`{"abc":"` + strings.Repeat("x", 200000) + `"}`, false},
		"another":            {`{"abc":` + entry + `}`, true},
		"another, old form":  {`{"abc":"x"}`, true},
		"no sidecars":        {`{"abc":{"hash":"x","sidecarList":null}}`, true},
		"its own":            {`{"log":` + entry + `}`, false},
		"its own and others": {`{"a":"y","log":` + entry + `,"abc":` + entry + `}`, true},
		"its own at the end": {`{"abc":` + entry + `,"log":"y"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := podOf(t, "metadata: {name: web}\nspec: {containers: [{name: app}]}")
			pod.Annotations = map[string]string{v1beta1.AnnotationSidecarSetHash: tc.had, v1beta1.AnnotationSidecarSetHashWithoutImage: tc.had}
			got := apply(t, compiled.Policy, set, pod)
			for _, key := range []string{v1beta1.AnnotationSidecarSetHash, v1beta1.AnnotationSidecarSetHashWithoutImage} {
				if !json.Valid([]byte(got.Annotations[key])) || strings.Count(got.Annotations[key], `"log":`) != 1 {
					t.Errorf("annotation %s: %s", key, got.Annotations[key])
				}
			}
			hashes := revision.HashesOf(&set.Spec)
			if mine := annotation.Of(got, "log"); mine == nil || mine.Hash != hashes.Full || mine.WithoutImage != hashes.WithoutImage {
				t.Errorf("got %+v of %v", mine, got.Annotations)
			}
			if other := annotation.Of(got, "abc"); (other != nil && other.Hash == "x") != tc.kept {
				t.Errorf("of abc: %+v", other)
			}
		})
	}
}

// The record that the policy of required sidecars believes is the one that the client has not sent.
func TestThePolicyProvesThatItHasInjected(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, simple)
	compiled := compile(t, set, time.Now())
	const list, checked, again = v1beta1.AnnotationSidecarSetList, v1beta1.AnnotationSidecarSetChecked, v1beta1.AnnotationSidecarSetCheckedAgain
	for name, tc := range map[string]struct {
		annotations map[string]string
		sent        []string
		want        [2]string // the values of the two keys
	}{
		"a pod without records":       {nil, []string{"a"}, [2]string{}},
		"records":                     {map[string]string{list: "log"}, []string{list}, [2]string{"log", ""}},
		"records and a key":           {map[string]string{list: "log", checked: "log"}, []string{list, checked}, [2]string{"", "log"}},
		"records and the other key":   {map[string]string{again: "x"}, []string{again}, [2]string{"log", ""}},
		"both keys":                   {map[string]string{checked: "log", again: "log"}, []string{checked, again}, [2]string{}},
		"another policy has noted it": {map[string]string{list: "a", checked: "a"}, []string{list}, [2]string{"a,log", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := podOf(t, "metadata: {name: web}\nspec: {containers: [{name: app}]}")
			pod.Annotations = tc.annotations
			fields := map[string]any{}
			for _, key := range tc.sent {
				fields["f:"+key] = map[string]any{}
			}
			text, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:annotations": fields}})
			if err != nil {
				t.Fatal(err)
			}
			pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(string(text))}}
			got := apply(t, compiled.Policy, set, pod)
			if is := [2]string{got.Annotations[checked], got.Annotations[again]}; is != tc.want {
				t.Errorf("%q, want %q", is, tc.want)
			}
		})
	}
}

func podOf(t *testing.T, manifest string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(manifest), pod); err != nil {
		t.Fatal(err)
	}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	return pod
}
