package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
)

// hotWorld is a world with one pod whose sidecar is upgraded hot: its containers log-1 and log-2 run in turns.
func hotWorld(t *testing.T, completion *v1beta1.HotUpgradeCompletion) *world {
	t.Helper()
	w := newWorld(t, 1)
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{
			UpgradeType: v1beta1.HotUpgrade, HotUpgradeEmptyImage: "empty:1", Completion: completion,
		}
	})
	pod := w.pod("web-0")
	first := pod.Spec.Containers[1]
	second := *first.DeepCopy()
	first.Name, second.Name, second.Image = "log-1", "log-2", "empty:1"
	pod.Spec.Containers = []corev1.Container{pod.Spec.Containers[0], first, second}
	spec := &w.set().Spec
	pod.Annotations = annotation.Write(&corev1.Pod{}, &annotation.Version{SidecarSet: "logs", Hashes: revision.HashesOf(spec), Sidecars: []string{"log"}}, metav1.NewTime(w.now))
	for i, name := range []string{"log-1", "log-2"} {
		pod.Annotations[v1beta1.PrefixSidecarSetVersion+name] = fmt.Sprint(1 - i)
		pod.Annotations[v1beta1.PrefixSidecarSetVersionAlt+name] = fmt.Sprint(i)
	}
	pod.Annotations[v1beta1.AnnotationHotUpgradeWorking] = `{"log":"log-1"}`
	w.check(w.Update(t.Context(), pod))
	w.kubelet()
	w.look()
	if s := w.set().Status; s.UpdatedReadyPods != 1 {
		t.Fatalf("%+v", s)
	}
	return w
}

// images of the two containers.
func (w *world) twins() string {
	containers := w.pod("web-0").Spec.Containers
	return containers[1].Image + " " + containers[2].Image
}

// The second write of a hot upgrade fails once. It is tried again by the controller itself: no event comes of a pod that was not written.
func TestHotUpgradeGoesOnAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	w := hotWorld(t, nil)
	w.change(image("log:2"))
	version := w.set().ResourceVersion
	w.look()
	if got := w.twins(); got != "log:1 log:2" {
		t.Fatalf("images %s", got)
	}
	if got := w.pod("web-0").Annotations[v1beta1.PrefixSidecarSetVersion+"log-2"]; got != version {
		t.Errorf("the new container has version %s, want the SidecarSet's, %s", got, version)
	}
	w.denied["web-0"] = true
	w.kubelet()
	w.look()
	w.denied = map[string]bool{}
	for range 3 {
		again := w.reconcile()
		if w.twins() == "empty:1 log:2" {
			break
		}
		if again == 0 || again > 10*time.Second {
			t.Fatalf("the controller looks again in %s", again)
		}
		w.now = w.now.Add(again)
	}
	if got := w.twins(); got != "empty:1 log:2" {
		t.Fatalf("images %s", got)
	}
	w.kubelet()
	w.look()
	if n := w.writes["web-0"]; n != 2 {
		t.Errorf("%d writes", n)
	}
	w.condition(v1beta1.ConditionProgressing, "True Completed")
	if pod := w.pod("web-0"); w.updated(pod) {
		t.Error("after its end an event without a change makes the controller look")
	}
}

// A new container that does not take over in time: the controller looks by itself when the time is over.
func TestHotUpgradeIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	w := hotWorld(t, &v1beta1.HotUpgradeCompletion{Type: v1beta1.CompletionAnnotation, Annotation: "example.com/took-over", TimeoutSeconds: new(int32(60))})
	w.change(image("log:2"))
	w.look()
	w.kubelet()
	w.look()
	began := w.now
	for w.now.Sub(began) < 5*time.Minute {
		again := w.reconcile()
		if again == 0 {
			t.Fatal("the controller does not look again")
		}
		if w.twins() == "log:1 empty:1" {
			break
		}
		w.now = w.now.Add(again)
	}
	if took := w.now.Sub(began); w.twins() != "log:1 empty:1" || took < 59*time.Second || took > 62*time.Second {
		t.Fatalf("images %s after %s", w.twins(), took)
	}
	w.kubelet()
	w.look()
	w.condition(v1beta1.ConditionDegraded, "True UpdateFailed")
	w.change(image("log:3"))
	w.look()
	if got := w.twins(); !slices.Contains(strings.Fields(got), "log:3") {
		t.Errorf("images %s with the next spec", got)
	}
}

// What keeps a pod from being updated is found for the version that it has.
func TestObstaclesAreThoseOfTheVersionOfAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	old := w.pod("web-0")
	w.change(fixed)
	w.reconcile()
	set := w.set()
	newest := old.DeepCopy()
	newest.UID = "another"
	newest.Annotations = annotation.Write(&corev1.Pod{}, &annotation.Version{SidecarSet: "logs", Hashes: revision.HashesOf(&set.Spec), Sidecars: []string{"log"}}, metav1.NewTime(w.now))
	newest.Spec.Containers[1].Env = append(newest.Spec.Containers[1].Env, set.Spec.Containers[0].Env...)
	again := old.DeepCopy()
	again.UID = "another"
	for _, step := range []struct {
		pod  *corev1.Pod
		want int32
	}{{newest, 0}, {again, 1}, {newest, 0}} {
		w.now = w.now.Add(time.Minute)
		w.updated(step.pod)
		_, err := w.r.report(t.Context(), w.r.find("logs"), w.set())
		w.check(err)
		if got := w.set().Status.NotUpgradablePods; got != step.want {
			t.Errorf("%d pods cannot be updated, want %d", got, step.want)
		}
	}
}

// The pod is looked at again before it is evicted: the cache may be behind.
func TestPodThatHasChangedIsNotEvicted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, pod *corev1.Pod){
		"being deleted": func(w *world, pod *corev1.Pod) {
			pod.Finalizers = []string{"example.org/keep"}
			w.check(w.Update(w.t.Context(), pod))
			w.check(w.Delete(w.t.Context(), pod))
		},
		"injected": func(w *world, pod *corev1.Pod) {
			pod.Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: "logs"}
			w.check(w.Update(w.t.Context(), pod))
		},
		"with another reason": func(w *world, pod *corev1.Pod) {
			pod.Annotations = map[string]string{v1beta1.AnnotationSidecarSetSkipped: `{"logs":"too many containers"}`}
			w.check(w.Update(w.t.Context(), pod))
		},
	} {
		w := newWorld(t, 1)
		w.change(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict })
		w.look()
		w.miss("a")
		w.created(w.pod("a"))
		change(w, w.pod("a"))
		w.said()
		w.reconcile()
		var pod corev1.Pod
		err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "a"}, &pod)
		if said := w.said(); err != nil || slices.ContainsFunc(said, func(e string) bool { return strings.Contains(e, "EvictedForInjection") }) {
			t.Errorf("%s: %v, %q", name, err, said)
		}
	}
}
