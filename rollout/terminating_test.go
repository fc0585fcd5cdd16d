package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

func TestANamespaceThatIsBeingDeletedEndsARolloutAsFailed(t *testing.T) {
	t.Parallel()
	f := newFixture(2)
	f.look()
	f.observed.Terminating = true
	if started := f.look(); len(started) > 0 || f.rollout.Status.CompletionTime != nil {
		t.Errorf("a restart is under way: started %v, %+v", started, f.rollout.Status)
	}
	f.restart("web-1")
	f.look()
	c := meta.FindStatusCondition(f.rollout.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Reason != v1alpha1.ReasonNamespaceTerminating || !strings.Contains(c.Message, "1 of 2 pods have been restarted; the namespace is being deleted") {
		t.Errorf("%+v", f.rollout.Status)
	}
}

// The count is not updated after the end, so it would stay as it was.
func TestAnEndedRolloutCountsNoUnavailablePods(t *testing.T) {
	t.Parallel()
	f := newFixture(3, func(s *v1alpha1.RestartRolloutSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
	setReady(f.pod("web-0"), false, start.Add(-time.Second))
	f.look()
	if got := f.rollout.Status.UnavailablePods; got != 1 {
		t.Fatalf("%d pods are said to be unavailable before the end", got)
	}
	f.fail("web-0")
	f.now = f.now.Add(60 * time.Second)
	f.look()
	status := f.rollout.Status
	if _, reason := f.condition(v1alpha1.ConditionFailed); status.CompletionTime == nil || reason != v1alpha1.ReasonDeadlineExceeded || status.UnavailablePods != 0 {
		t.Errorf("after the end: %+v", status)
	}
	f.look()
	if diff := cmp.Diff(status, f.rollout.Status); diff != "" {
		t.Errorf("changed after the end:\n%s", diff)
	}
}
