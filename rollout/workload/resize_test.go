package workload_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// cpus has container app request CPUs. Nodes have 8.
func cpus(n string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
}

// resized sets what kubelet reports about the resources of a pod.
func (w *world) resized(pod *corev1.Pod) {
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	if w.pending != "" && pod.Spec.Containers[0].Resources.Requests.Cpu().Value() > 8 {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: w.pending, Message: "node has not enough CPU",
		})
	}
}

// resizing returns a workload whose 3 pods are to get more CPUs than their nodes have.
func resizing(t *testing.T, kind string, set func(*world)) *world {
	t.Helper()
	w := newWorld(t, kind, 3)
	w.edit(cpus("1"))
	w.rounds(20)
	w.created = 0
	set(w)
	w.edit(cpus("64"))
	w.rounds(20)
	return w
}

func (w *world) cpus() map[string]int {
	requests := map[string]int{}
	for _, pod := range w.pods {
		requests[pod.Spec.Containers[0].Resources.Requests.Cpu().String()]++
	}
	return requests
}

// fails fails the test unless the update has failed, for this reason and with this message.
func (w *world) fails(reason, message string) {
	w.t.Helper()
	failures := w.policy.Status.Failures
	if w.progressing() != "False PodsFailed" || len(failures) == 0 || failures[0].Reason != reason || !strings.Contains(failures[0].Message, message) {
		w.t.Errorf("%s: %v; want %s: %s", w.progressing(), failures, reason, message)
	}
}

func TestResizeThatANodeCannotCarryOutFails(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := resizing(t, kind, func(w *world) { w.pending = corev1.PodReasonInfeasible })
		w.fails(corev1.PodReasonInfeasible, "node has not enough CPU")
		if w.cpus()["64"] != 1 || w.unavailable() > 0 {
			t.Errorf("%s: CPUs %v, %d pods are not ready", kind, w.cpus(), w.unavailable())
		}
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
		w.rounds(40)
		if w.cpus()["1"] != 3 || w.template().Spec.Containers[0].Resources.Requests.Cpu().Value() != 1 || w.progressing() != "True Completed" || w.created > 0 {
			t.Errorf("%s: with Undo CPUs %v, %s, %d pods created", kind, w.cpus(), w.progressing(), w.created)
		}
	}
}

func TestResizeThatWaitsFailsAtTheDeadline(t *testing.T) {
	t.Parallel()
	w := resizing(t, "StatefulSet", func(w *world) { w.pending = corev1.PodReasonDeferred })
	if w.policy.Status.FailedPods > 0 || w.progressing() != "True Updating" {
		t.Fatalf("before the deadline %s, failures %v", w.progressing(), w.policy.Status.Failures)
	}
	w.now = w.now.Add(11 * time.Minute)
	w.rounds(1)
	w.fails(v1alpha1.ReasonNoProgress, "its update has not ended after 10m0s: the resize waits: node has not enough CPU")
	w.pending = "" // another pod has left the node
	for _, pod := range w.pods {
		w.resized(pod)
	}
	w.rounds(20)
	if w.cpus()["64"] != 3 || w.progressing() != "True Completed" {
		t.Errorf("after the resize CPUs %v, %s", w.cpus(), w.progressing())
	}
}

// For example because of a ResourceQuota: the record of the update is written before.
func TestResizeThatTheAPIServerRefusesFailsAtTheDeadline(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{0, 5 * time.Minute} {
		w := resizing(t, "Deployment", func(w *world) {
			w.refused = true
			if deadline > 0 {
				w.policy.Spec.ProgressDeadlineSeconds = new(int32(deadline.Seconds()))
			}
		})
		began := w.now.Add(-20 * time.Second)
		if w.policy.Status.FailedPods > 0 {
			t.Fatalf("before the deadline: %v", w.policy.Status.Failures)
		}
		for _, after := range []time.Duration{605 * time.Second, 1200 * time.Second} {
			w.now = began.Add(after)
			w.rounds(1)
			w.fails(v1alpha1.ReasonNoProgress, "resize container app")
		}
	}
}

// The next step of the update is a write, which nobody has made during the outage.
func TestAnOutageOfTheManagerFailsNoPod(t *testing.T) {
	t.Parallel()
	w := resizing(t, "Deployment", func(w *world) { w.refused = true })
	w.now = w.now.Add(20 * time.Minute)
	w.since = w.now
	w.rounds(1)
	if w.policy.Status.FailedPods > 0 {
		t.Errorf("after the outage: %v", w.policy.Status.Failures)
	}
	w.now = w.now.Add(11 * time.Minute)
	w.rounds(1)
	w.fails(v1alpha1.ReasonNoProgress, "resize container app")
}

// For example by a VerticalPodAutoscaler.
func TestALaterResizeByOthersFailsNoPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "Deployment", 3)
	for _, cpu := range []string{"1", "2"} {
		w.edit(cpus(cpu))
		w.rounds(20)
	}
	w.now = w.now.Add(time.Hour)
	for _, pod := range w.pods {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, LastTransitionTime: metav1.NewTime(w.now),
		})
	}
	w.rounds(2)
	if w.policy.Status.FailedPods > 0 {
		t.Errorf("%s: %v", w.progressing(), w.policy.Status.Failures)
	}
}
