package control

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
)

// stateful is a world with three pods of a StatefulSet, and a SidecarSet that has changed in what cannot be changed in a running
// pod and asks for evictions.
func stateful(t *testing.T, change func(*v1beta1.SidecarSetSpec)) *world {
	t.Helper()
	w := newWorld(t, 3)
	for _, pod := range w.pods() {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "web", Controller: new(true)}}
		w.check(w.Update(t.Context(), &pod))
	}
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		s.UpdateStrategy.RecreatePolicy = v1beta1.RecreateEvict
		change(s)
	})
	return w
}

// evicted lets the controller act a few times, and returns the pods that are gone.
func (w *world) evicted() []corev1.Pod {
	w.t.Helper()
	var evicted []corev1.Pod
	before := w.pods()
	for range 4 {
		w.look()
		w.now = w.now.Add(time.Second)
		for _, pod := range before {
			key := client.ObjectKeyFromObject(&pod)
			if err := w.Get(w.t.Context(), key, &corev1.Pod{}); apierrors.IsNotFound(err) && w.r.find("logs").remove(key, pod.UID) {
				evicted = append(evicted, pod)
			}
		}
	}
	return evicted
}

// createAgain is what the StatefulSet and the webhook do when a pod is gone.
func (w *world) createAgain(pod *corev1.Pod) {
	w.t.Helper()
	set := w.set()
	version := &annotation.Version{SidecarSet: "logs", Hashes: revision.HashesOf(&set.Spec), Sidecars: []string{"log"}}
	pod.UID, pod.ResourceVersion, pod.Annotations = pod.UID+"-again", "", annotation.Write(&corev1.Pod{}, version, metav1.NewTime(w.now))
	pod.Spec.Containers[1].Env = append(pod.Spec.Containers[1].Env, set.Spec.Containers[0].Env...)
	w.run(pod)
	w.check(w.Create(w.t.Context(), pod))
}

func TestPodsThatCannotBeUpdatedAreEvictedWithinMaxUnavailable(t *testing.T) {
	t.Parallel()
	w := stateful(t, func(*v1beta1.SidecarSetSpec) {})
	for range 3 {
		evicted := w.evicted()
		if len(evicted) != 1 {
			t.Fatalf("%d pods are gone before the first is created again", len(evicted))
		}
		w.createAgain(&evicted[0])
	}
	if evicted := w.evicted(); len(evicted) != 0 {
		t.Errorf("%d pods are evicted although all are of the newest spec", len(evicted))
	}
	w.condition(v1beta1.ConditionProgressing, "True Completed")
}

func TestEvictedPodIsNotForgottenWhenTheSpecChanges(t *testing.T) {
	t.Parallel()
	w := stateful(t, func(*v1beta1.SidecarSetSpec) {})
	evicted := w.evicted()
	if len(evicted) != 1 {
		t.Fatalf("%d pods are gone at first", len(evicted))
	}
	w.change(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Env[0].Value = "trace" })
	if more := w.evicted(); len(more) != 0 {
		t.Fatalf("%d more pods are gone before the first is created again", len(more))
	}
	w.createAgain(&evicted[0])
	if more := w.evicted(); len(more) != 1 {
		t.Errorf("%d pods are evicted when the first has been created again", len(more))
	}
}

// New pods would get what the old ones have, or nothing.
func TestPodsAreNotEvictedWhenNewOnesDoNotGetTheNewestSpec(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta1.SidecarSetInjectionStrategy){
		"paused": func(s *v1beta1.SidecarSetInjectionStrategy) { s.Paused = true },
		"policy": func(s *v1beta1.SidecarSetInjectionStrategy) { s.Engine = v1beta1.EnginePolicy },
		"pinned": func(s *v1beta1.SidecarSetInjectionStrategy) {
			s.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: new("logs-1")}
		},
	} {
		w := stateful(t, func(s *v1beta1.SidecarSetSpec) { change(&s.InjectionStrategy) })
		if evicted := w.evicted(); len(evicted) != 0 {
			t.Errorf("%s: %d pods are evicted", name, len(evicted))
		}
		w.condition(v1beta1.ConditionDegraded, "True NotUpgradable")
	}
}

// While the webhook cannot be reached the pods that are created lack their sidecars, and each eviction would take one more away.
func TestEvictionsPauseWhenTheReplacementWasNotInjected(t *testing.T) {
	t.Parallel()
	w := stateful(t, func(*v1beta1.SidecarSetSpec) {})
	evicted := w.evicted()
	if len(evicted) != 1 {
		t.Fatalf("%d pods are gone at first", len(evicted))
	}
	bare := evicted[0].DeepCopy()
	bare.UID, bare.ResourceVersion, bare.Annotations, bare.CreationTimestamp = "bare", "", nil, metav1.NewTime(w.now)
	bare.Spec.Containers = bare.Spec.Containers[:1]
	w.check(w.Create(t.Context(), bare))
	w.now = w.now.Add(10 * time.Minute)
	if evicted := w.evicted(); len(evicted) != 0 {
		t.Fatalf("another pod has lost its sidecars: %s", evicted[0].Name)
	}
	w.check(w.Delete(t.Context(), bare)) // as the repair does
	w.r.find("logs").remove(client.ObjectKeyFromObject(bare), bare.UID)
	w.createAgain(&evicted[0])
	if evicted := w.evicted(); len(evicted) != 1 {
		t.Errorf("%d pods are evicted when the webhook works again", len(evicted))
	}
}

// The watch may bring the end of a pod before the API server has answered its eviction: the rollout is not complete meanwhile.
func TestAnEvictionCountsAlsoIfItsEventComesBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	w := stateful(t, func(*v1beta1.SidecarSetSpec) {})
	w.look()
	s := w.r.find("logs")
	pod := w.pods()[0]
	pod.DeletionTimestamp, pod.Status.Phase = &metav1.Time{Time: w.now}, corev1.PodSucceeded
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)})
	s.mu.Lock()
	before, _, _ := s.evictions(w.now)
	s.mu.Unlock()
	s.observe(&pod, true, nil, nil, w.now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if evicted, _, _ := s.evictions(w.now); evicted != before+1 {
		t.Errorf("%d evictions after %d", evicted, before)
	}
}

// Of a pod that is too large for the cache it is not known whether it has the newest sidecars. Its replacement would be too large again.
func TestPodsThatAreTooLargeAreNotEvicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	for _, pod := range w.pods() {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "web", Controller: new(true)}}
		pod.Annotations["kruise.io/sidecarset-x"] = strings.Repeat("x", 200<<10)
		w.check(w.Update(t.Context(), &pod))
	}
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.RecreatePolicy = v1beta1.RecreateEvict })
	if got := w.evicted(); len(got) != 0 {
		t.Errorf("%d pods were evicted", len(got))
	}
	if n := w.set().Status.NotUpgradablePods; n != 3 {
		t.Errorf("%d pods are not upgradable, want 3", n)
	}
}
