package cli_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
)

func TestTheProgressSaysWhyNoPodIsNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			status v1alpha1.RestartRolloutStatus
			reason string
			want   string
		}{
			"another pod is unavailable": {
				v1alpha1.RestartRolloutStatus{RolloutPods: v1alpha1.RolloutPods{UnavailablePods: 1}}, v1alpha1.ReasonBudget, "0 failed: maxUnavailable is reached: 2 pods are left; unavailable: web-1\n",
			},
			"another pod is unavailable, and one is restarted": {
				v1alpha1.RestartRolloutStatus{RolloutPods: v1alpha1.RolloutPods{UnavailablePods: 2}, RestartingPods: 1}, v1alpha1.ReasonBudget, "0 failed: maxUnavailable is reached: 2 pods are left; unavailable: web-1\n",
			},
			"only the pod that is restarted": {v1alpha1.RestartRolloutStatus{RolloutPods: v1alpha1.RolloutPods{UnavailablePods: 1}, RestartingPods: 1}, v1alpha1.ReasonBudget, "1 under way, 0 failed\n"},
			"a PodDisruptionBudget":          {v1alpha1.RestartRolloutStatus{}, v1alpha1.ReasonDisruptionBudget, "0 failed: 2 pods are left; unavailable: web-1\n"},
			"nothing":                        {v1alpha1.RestartRolloutStatus{RestartingPods: 1}, v1alpha1.ReasonRestarting, "1 under way, 0 failed\n"},
			"a partition": {v1alpha1.RestartRolloutStatus{}, v1alpha1.ReasonPartition,
				"it does not continue by itself\n  kubectl patch restartrollout web-x --namespace=shop --type=merge --patch='{\"spec\":{\"partition\":0}}'\n"},
		} {
			f := newFixture(t)
			f.finish = func(object client.Object) {
				tt.status.ObservedGeneration, tt.status.MatchedPods = 1, 3
				meta.SetStatusCondition(&tt.status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: tt.reason, Message: "2 pods are left; unavailable: web-1"})
				object.(*v1alpha1.RestartRollout).Status = tt.status
			}
			f.config.Timeout = 10 * time.Millisecond
			if err := run(t, f, "deployment/web"); !errors.Is(err, console.ErrTimeout) || !strings.Contains(f.out.String(), tt.want) {
				t.Errorf("%s: %v, no %q in:\n%s", name, err, tt.want, f.out.String())
			}
		}
	})
}
