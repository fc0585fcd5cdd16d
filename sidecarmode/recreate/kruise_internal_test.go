package recreate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// OpenKruise up to 1.9 stores no conditions, so since when the manager is waited for is known to the sidecar alone.
func TestDrainIsNotWaitedForWithoutEndUnderOpenKruises19CRD(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.alpha = true
		w.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
		w.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(5))}
		began := time.Now()
		w.play(t, 2*time.Minute)
		status := w.status()
		if !strings.Contains(status.Message, "the manager did not make the pod not ready within 1 minute") || status.CompletionTime == nil {
			t.Fatalf("%+v", status)
		}
		if took := status.CompletionTime.Sub(began); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("ended after %s", took)
		}
		w.check(t, "failed", "") // the reason is in a condition
	})
}
