package set_test

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/cli/set"
	"github.com/refit-project/refit/cli/set/change"
	"github.com/refit-project/refit/kubelet"
)

// The change stops no container, and at its end the pod, which an earlier update has left out of its Services, is put back.
func TestMissingPermissionToPutThePodBackIsFoundBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateInPlaceUpdateReady)
		kubelet.Condition(&s.pod.Status, v1beta1.ReadinessGateInPlaceUpdateReady).Status = corev1.ConditionFalse
		s.kubelet()
		s.denied = []string{"patch pods/status"}
		_, err := s.set(t.Context(), set.Config{}, must(change.Resources(change.Sizes{Containers: []string{"app"}, Requests: "cpu=200m"})))
		if cli.ExitCode(err) != cli.ExitRefused || !strings.Contains(err.Error(), "patch pods/status") || len(s.writes) > 0 {
			t.Errorf("%v after the writes %q", err, s.writes)
		}
	})
}
