package podrules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/kubelet"
)

// A runtime that is given no grace period kills at once: the program would not get the chance to end that its pod promises it.
func TestStopThatIsTriedAgainAfterItsGracePeriodStillSendsTheStopSignal(t *testing.T) {
	t.Parallel()
	hook := &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		grace, since, want time.Duration
		hook, runsHook     bool
	}{
		"the first attempt":                      {grace: 30 * time.Second, want: 30 * time.Second},
		"a later one has the rest":               {grace: 30 * time.Second, since: 12 * time.Second, want: 18 * time.Second},
		"nothing is left":                        {grace: 30 * time.Second, since: time.Hour, want: time.Second},
		"less than a second is left":             {grace: 30 * time.Second, since: 29_700 * time.Millisecond, want: time.Second},
		"it began after now, by another clock":   {grace: 30 * time.Second, since: -time.Minute, want: 30 * time.Second},
		"none is wanted":                         {since: time.Hour, hook: true},
		"the hook has used up all of it":         {grace: 30 * time.Second, since: time.Hour, hook: true, want: kubelet.MinGracePeriod},
		"the hook may go on in what is left":     {grace: 30 * time.Second, since: 10 * time.Second, hook: true, want: 20 * time.Second, runsHook: true},
		"the grace period is less than a second": {grace: 300 * time.Millisecond, since: time.Hour, want: 300 * time.Millisecond},
	} {
		began := metav1.NewMicroTime(now.Add(-tt.since))
		var handler *corev1.LifecycleHandler
		if tt.hook {
			handler = hook
		}
		got, runs := podrules.Rest(tt.grace, handler, &began, now)
		if got != tt.want || (runs != nil) != tt.runsHook {
			t.Errorf("%s: %s, hook %v; want %s, hook %t", name, got, runs, tt.want, tt.runsHook)
		}
	}
}
