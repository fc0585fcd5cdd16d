package control

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

func TestRolloutIsOneWriteForEachPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	w.look()
	if s := w.set().Status; s.MatchedPods != 5 || s.UpdatedReadyPods != 5 || s.LatestRevision == "" {
		t.Fatalf("%+v", s)
	}
	w.change(image("log:2"))
	w.look()
	if got := w.images(); got["log:2"] != 1 {
		t.Fatalf("%v at first, with maxUnavailable 1", got)
	}
	w.look() // kubelet has not acted
	if got := w.images(); got["log:2"] != 1 {
		t.Fatalf("%v before the first is ready", got)
	}
	w.rounds(6)
	if got := w.images(); got["log:2"] != 5 {
		t.Errorf("%v", got)
	}
	for name, n := range w.writes {
		if n != 1 {
			t.Errorf("%d writes to %s", n, name)
		}
		if pod, _ := w.r.find("logs").fleet.Get(client.ObjectKey{Namespace: "shop", Name: name}); !pod.Ours {
			t.Errorf("%s is not known to be updated by this process", name)
		}
	}
	w.condition(v1beta1.ConditionProgressing, "True Completed")
	var revisions appsv1.ControllerRevisionList
	w.check(w.List(t.Context(), &revisions, client.InNamespace("refit-system")))
	if len(revisions.Items) != 2 {
		t.Errorf("%d revisions", len(revisions.Items))
	}
	before := w.set().ResourceVersion
	if w.rounds(2); w.set().ResourceVersion != before {
		t.Error("the status is written although nothing changes")
	}
}

// Defect of the peer: a pod whose update is always refused holds up all others.
func TestPodWhoseUpdateIsDeniedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.look()
	w.denied["web-0"], w.denied["web-3"] = true, true
	w.change(image("log:2"))
	w.rounds(12)
	if got := w.images(); got["log:2"] != 2 {
		t.Fatalf("%v", got)
	}
	w.denied = map[string]bool{}
	w.now = w.now.Add(time.Hour)
	w.rounds(6)
	if got := w.images(); got["log:2"] != 4 {
		t.Errorf("the denied pods are not tried again: %v", got)
	}
}

// No event comes of a pod to which nobody writes.
func TestConflictIsTriedAgainWithoutAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	w.conflict = true
	w.change(image("log:2"))
	for range 5 {
		again := w.reconcile()
		if w.images()["log:2"] == 1 {
			return
		}
		if again == 0 || again > time.Minute {
			t.Fatalf("the controller looks again in %s", again)
		}
		w.now = w.now.Add(again)
	}
	t.Error("the pod is not updated")
}

func TestFaultyImageStopsAtMaxUnavailableAndARollbackRepairsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("bad")(s)
		s.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
	})
	w.rounds(8)
	if got := w.images(); got["bad"] != 2 {
		t.Fatalf("%v", got)
	}
	w.condition(v1beta1.ConditionDegraded, "True UpdateFailed")
	w.change(image("log:1"))
	w.rounds(4)
	if got := w.images(); got["log:1"] != 5 {
		t.Errorf("%v", got)
	}
	w.condition(v1beta1.ConditionDegraded, "False AsExpected")
}

// The SidecarSet has had another image for a moment. The container that kubelet has started with it is not the one of the newest
// image, as the node's daemon reports, so the pod is still in an update.
func TestAContainerOfAnImageBetweenIsNotUpdated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	w.change(image("log:2"))
	w.look()
	w.change(image("log:3"))
	w.look()
	for _, pod := range w.pods() {
		if pod.Spec.Containers[1].Image != "log:3" {
			continue
		}
		between := pod.DeepCopy()
		between.Spec.Containers[1].Image = "log:2"
		w.run(between)
		pod.Status = between.Status
		w.check(w.Status().Update(t.Context(), &pod))
		pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = reported(between)
		w.check(w.Update(t.Context(), &pod))
	}
	w.look()
	if got := w.images(); got["log:3"] != 1 {
		t.Fatalf("%v while the first pod has the image between, with maxUnavailable 1", got)
	}
	w.rounds(6)
	if got := w.images(); got["log:3"] != 3 {
		t.Errorf("%v at the end", got)
	}
}

// reported is what the daemon reports of the containers of a pod.
func reported(pod *corev1.Pod) string {
	var set v1beta1.RuntimeContainerMetaSet
	for i, status := range pod.Status.ContainerStatuses {
		hash, err := strconv.ParseUint(kubelet.ContainerHash(&pod.Spec.Containers[i]), 16, 64)
		if err != nil {
			panic(err)
		}
		set.Containers = append(set.Containers, v1beta1.RuntimeContainerMeta{
			Name: status.Name, ContainerID: status.ContainerID, Hashes: v1beta1.RuntimeContainerHashes{PlainHash: hash, ExtractedEnvFromMetadataHash: 86995377},
		})
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestRolloutPausesByItselfAndByTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("bad")(s)
		s.UpdateStrategy.MaxUnavailable, s.UpdateStrategy.PauseAfterFailedPods = new(intstr.FromInt32(3)), new(int32(1))
	})
	w.rounds(4)
	w.condition(v1beta1.ConditionProgressing, "False PausedByFailures")
	if s := w.set().Status; s.PausedRevision != s.LatestRevision {
		t.Errorf("%+v", s)
	}
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("log:3")(s)
		s.UpdateStrategy.Paused = true
	})
	w.rounds(4)
	if got := w.images(); got["log:3"] != 0 {
		t.Errorf("%v while paused", got)
	}
	w.condition(v1beta1.ConditionProgressing, "Unknown Paused")
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.UpdateStrategy.Paused, s.UpdateStrategy.Partition = false, new(intstr.FromInt32(2))
	})
	w.rounds(10)
	if got := w.images(); got["log:3"] != 4 {
		t.Errorf("%v with partition 2", got)
	}
	w.condition(v1beta1.ConditionProgressing, "True Partition")
}

func TestPodsThatCannotBeUpdatedSaySo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	w.rounds(2)
	w.condition(v1beta1.ConditionDegraded, "True NotUpgradable")
	upgradable := func() corev1.PodCondition {
		for _, c := range w.pods()[0].Status.Conditions {
			if c.Type == v1beta1.ConditionSidecarSetUpgradable {
				return c
			}
		}
		return corev1.PodCondition{}
	}
	if c := upgradable(); c.Status != corev1.ConditionFalse || c.Message != `{"logs":false}` || c.Reason != "UpdateImmutableField" || w.now.Sub(c.LastTransitionTime.Time) > time.Minute {
		t.Errorf("%+v", c)
	}
	w.change(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Env = nil })
	w.rounds(2)
	if c := upgradable(); c.Status != corev1.ConditionTrue || c.Message != `{"logs":true}` {
		t.Errorf("%+v", c)
	}
	w.condition(v1beta1.ConditionDegraded, "False AsExpected")
}

func TestImagesArePulledBeforeTheFirstStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("log:2")(s)
		s.UpdateStrategy.PrePullPolicy = v1beta1.PrePullAlways
	})
	w.rounds(3)
	var jobs v1beta1.ImagePullJobList
	w.check(w.List(t.Context(), &jobs))
	if len(jobs.Items) != 1 || jobs.Items[0].Spec.Image != "log:2" || jobs.Items[0].Spec.Selector.Names[0] != "a" || w.images()["log:2"] != 0 {
		t.Fatalf("%+v, images %v", jobs.Items, w.images())
	}
	jobs.Items[0].Status.CompletionTime = &metav1.Time{Time: w.now}
	w.check(w.Update(t.Context(), &jobs.Items[0]))
	w.rounds(5)
	if got := w.images(); got["log:2"] != 3 {
		t.Errorf("%v", got)
	}
}
