package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

func TestMetricsOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.r.metrics
	if n := testutil.CollectAndCount(m.updates); n != 0 {
		t.Errorf("%d outcomes without an update", n)
	}
	w.image("app:2")
	w.rounds(20)
	if got := testutil.ToFloat64(m.updates.WithLabelValues("Deployment", "completed")); got != 1 {
		t.Errorf("%g updates are completed", got)
	}
	if n := testutil.CollectAndCount(m.duration); n != 1 {
		t.Errorf("%d durations", n)
	}
	for state, want := range map[string]float64{"matched": 2, "updated": 2, "updated_ready": 2, "updating": 0, "failed": 0, "unavailable": 0} {
		if got := testutil.ToFloat64(m.pods.WithLabelValues("shop", "web", state)); got != want {
			t.Errorf("%g pods are %s, want %g", got, state, want)
		}
	}
	w.check(w.Delete(t.Context(), w.policy("web")))
	for range 3 { // the label and the finalizer are removed first
		w.reconcile("web")
	}
	if n := testutil.CollectAndCount(m.pods); n != 0 {
		t.Errorf("%d metrics of a deleted policy", n)
	}
}

func TestAReplacementIsNoCompletedUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, policy := w.r.metrics, w.policy("web")
	before := &v1alpha1.InPlaceUpdatePolicyStatus{Update: &v1alpha1.TemplateUpdate{}}
	replacing, completed := &metav1.Condition{Reason: v1alpha1.ReasonReplacing}, &metav1.Condition{Reason: v1alpha1.ReasonCompleted}
	m.progress(policy, before, nil, replacing, w.now)
	m.progress(policy, before, replacing, completed, w.now)
	if replaced, n := testutil.ToFloat64(m.updates.WithLabelValues("Deployment", "replaced")), testutil.CollectAndCount(m.updates); replaced != 1 || n != 1 {
		t.Errorf("%g replaced, %d outcomes", replaced, n)
	}
}

// Of an image that cannot be pulled the pod has an Event, once.
func TestPodThatHasFailedHasAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.image("app:2")
	w.reconcile("web")
	pods := w.pods()
	for range 3 {
		for i := range pods {
			if pod := &pods[i]; pod.Spec.Containers[0].Image == "app:2" {
				pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
				pod.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now)}
				w.check(w.Status().Update(t.Context(), pod))
			}
		}
		w.now = w.now.Add(11 * time.Minute)
		w.reconcile("web")
		pods = w.pods()
	}
	if got := w.condition("web", "Progressing"); got != "False PodsFailed" {
		t.Fatal(got)
	}
	events := 0
	for len(w.events) > 0 {
		if text := <-w.events; strings.Contains(text, "InPlaceUpdateFailed") {
			events++
		}
	}
	if events != 1 {
		t.Errorf("%d Events about the pod", events)
	}
	if got := testutil.ToFloat64(w.r.metrics.failed); got != 1 {
		t.Errorf("%g pods have failed", got)
	}
	if got := testutil.ToFloat64(w.r.metrics.updates.WithLabelValues("Deployment", "failed")); got != 1 {
		t.Errorf("%g updates have failed", got)
	}
}

func TestAnUpdateOfAnnotationsThatRestartsNothingHasAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"checksum/config": "2"} })
	w.rounds(20)
	if got := w.condition("web", v1alpha1.ConditionReady); got != "True Completed" || !w.sent("NothingRestarted") {
		t.Errorf("%s, or no Event", got)
	}
}
