package requester_test

import (
	"log/slog"
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
		if conditions["Finished"] != "True" || conditions["Succeeded"] == conditions["Failed"] {
			t.Errorf("outcome %q: conditions %v", outcome.Reason, conditions)
		}
	}
}

func TestLogLinesSayWhoAskedAndWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"nobody recorded":        {nil, "msg=m\n"},
		"a name":                 {map[string]string{v1beta1.AnnotationRequestedBy: "alice"}, "msg=m requestedBy=alice\n"},
		"a name and a reason":    {map[string]string{v1beta1.AnnotationRequestedBy: "alice", v1beta1.AnnotationReason: "stuck"}, "msg=m requestedBy=alice reason=stuck\n"},
		"nothing can be printed": {map[string]string{v1beta1.AnnotationRequestedBy: "\n\t"}, "msg=m\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := &v1beta1.ContainerRecreateRequest{}
			request.Annotations = tt.annotations
			var out strings.Builder
			logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
					return slog.Attr{}
				}
				return a
			}}))
			logger.Info("m", requester.LogAttributes(request))
			if out.String() != tt.want {
				t.Errorf("got %q, want %q", out.String(), tt.want)
			}
		})
	}
}
