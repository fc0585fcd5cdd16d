package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
)

func TestTheDrainOfAPodIsShownWithItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			drained bool
			want    string
		}{
			"drained":                            {true, "draining until 12:00:10 UTC: the pod is out of its Services before its first container is stopped"},
			"not taken out by refit-manager yet": {false, "waiting for refit-manager to make the pod not ready"},
		} {
			f := newFixture(t)
			var p corev1.Pod
			if err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-abc-1"}, &p); err != nil {
				t.Fatal(err)
			}
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
			if err := f.config.API.Update(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			f.finish = func(object client.Object) {
				request := object.(*v1beta1.ContainerRecreateRequest)
				request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
				request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending}}
				if tt.drained {
					v1beta1.SetPreRecreateGrace(&request.Status, time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), "")
				}
			}
			f.config.DrainSeconds, f.config.Timeout = new(int32(10)), 10*time.Millisecond
			if err := run(t, f, "pod/web-abc-1"); console.ExitCode(err) != console.ExitTimeout || !strings.Contains(f.out.String(), tt.want) || strings.Contains(f.out.String(), "stopping") {
				t.Errorf("%s: %v, no %q in:\n%s", name, err, tt.want, f.out.String())
			}
		}
	})
}

// The drain has ended when an instance to be stopped is recorded.
func TestAStopAfterADrainIsShownAsAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.finish = func(object client.Object) {
			request := object.(*v1beta1.ContainerRecreateRequest)
			request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(10))
			request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
			request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending, ContainerID: "containerd://old"}}
			v1beta1.SetPreRecreateGrace(&request.Status, metav1.Now().Time, "")
		}
		f.config.Timeout = 10 * time.Millisecond
		if err := run(t, f, "pod/web-abc-1"); console.ExitCode(err) != console.ExitTimeout || !strings.Contains(f.out.String(), "container app: stopping") {
			t.Errorf("%v\n%s", err, f.out.String())
		}
	})
}
