package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Each reconciliation more is a delay in which a pod is out of service.
func TestStepsThatNeedNotWaitAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Requests = cpu("20m") })
	w.reconcile("web")
	begun := 0
	for _, pod := range w.pods() {
		if pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] == "" {
			continue
		}
		begun++
		if got := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "20m" {
			t.Errorf("the update of %s has begun, and its CPU is still %s", pod.Name, got)
		}
	}
	if begun != 1 {
		t.Errorf("the updates of %d pods have begun", begun)
	}
}
