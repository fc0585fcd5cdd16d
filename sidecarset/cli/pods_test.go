package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

// injected is a pod with the sidecars of a version.
func injected(name, image, revisionName string) *corev1.Pod {
	of := set(image)
	spec := defaults.Normal(&of.Spec)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	version := annotation.Version{SidecarSet: "mesh", Revision: revisionName, Hashes: revision.HashesOf(spec), Sidecars: []string{"proxy"}}
	pod.Annotations = annotation.Write(pod, &version, metav1.NewTime(noon))
	proxy := spec.Containers[0].Container
	proxy.Env = append(proxy.Env, corev1.EnvVar{Name: v1beta1.EnvSidecarInjected, Value: "true"})
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}, proxy}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

func TestPodsOfASidecarSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := injected("other", "proxy:3", "mesh-3")
	other.Annotations[v1beta1.AnnotationSidecarSetList] = "logs"
	ended := injected("ended", "proxy:3", "mesh-3")
	ended.Status.Phase = corev1.PodSucceeded
	broken := injected("broken", "proxy:2", "mesh-2")
	broken.Spec.Containers = broken.Spec.Containers[:1]
	of, err := f.config.Read(t.Context(), f.stored(t))
	if err != nil {
		t.Fatal(err)
	}
	states := of.Pods([]*corev1.Pod{injected("a", "proxy:3", "mesh-3"), injected("b", "proxy:2", "mesh-2"), injected("c", "proxy:1", "gone"), other, ended, broken}, noon)
	var got []string
	for _, one := range states {
		got = append(got, one.Pod.Name+" "+one.Revision+" "+one.State)
	}
	if want := "broken 2 not in place, b 2 outdated, c gone outdated, a 3 updated"; strings.Join(got, ", ") != want {
		t.Errorf("got %s\nwant %s\n%+v", strings.Join(got, ", "), want, states)
	}
	if len(states) > 0 && !strings.Contains(states[0].Why, "proxy") {
		t.Errorf("%+v", states[0])
	}
}
