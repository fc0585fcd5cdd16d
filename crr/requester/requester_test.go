package requester_test

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/crrtest"
	"github.com/refit-project/refit/crr/requester"
)

func TestRequestedBy(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 200)
	for name, tc := range map[string]struct{ user, reason, want string }{
		"nothing recorded": {reason: "x"},
		"user":             {user: "alice", want: "requested by alice"},
		"with a reason":    {user: "alice", reason: "node pressure", want: "requested by alice: node pressure"},
		"line breaks":      {user: "alice\nlevel=ERROR", want: "requested by alicelevel=ERROR"},
		"long":             {user: long, want: "requested by " + strings.Repeat("ä", 128)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &v1beta1.ContainerRecreateRequest{}
			r.Annotations = map[string]string{"refit.dev/requested-by": tc.user, "refit.dev/reason": tc.reason}
			if got := requester.Clause(r); got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Scripts wait for one condition, whatever the outcome is.
func TestConditionCompleteIsTrueForEveryOutcome(t *testing.T) {
	t.Parallel()
	for _, outcome := range []crr.Outcome{{}, {Reason: crr.ReasonPodGone, Message: "pod has gone"}} {
		var status v1beta1.ContainerRecreateRequestStatus
		crr.Complete(&status, outcome, 1, crrtest.AdmittedAt)
		conditions := map[string]string{}
		for _, c := range status.Conditions {
			conditions[c.Type] = string(c.Status)
		}
		if conditions["Complete"] != "True" || conditions["Succeeded"] == conditions["Failed"] {
			t.Errorf("outcome %q: conditions %v", outcome.Reason, conditions)
		}
	}
}
