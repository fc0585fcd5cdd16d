package status_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/status"
)

// with has a condition; none without a reason.
func with(kind, reason string) *v1beta1.SidecarSet {
	s := set()
	if reason != "" {
		s.Status.Conditions = []metav1.Condition{{Type: kind, Reason: reason, Message: "of " + reason}}
	}
	return s
}

func TestEventsTellOfStatesThatHaveChanged(t *testing.T) {
	t.Parallel()
	const progressing, degraded = v1beta1.ConditionProgressing, v1beta1.ConditionDegraded
	for _, tt := range []struct{ kind, was, is, severity string }{ // severity: empty if there is no Event
		{progressing, "", status.ReasonUpdating, corev1.EventTypeNormal},
		{progressing, status.ReasonUpdating, status.ReasonUpdating, ""},
		{progressing, status.ReasonUpdating, "", ""},
		{progressing, status.ReasonUpdating, status.ReasonCompleted, corev1.EventTypeNormal},
		{progressing, status.ReasonUpdating, string(rollout.HoldPaused), corev1.EventTypeNormal},
		{progressing, status.ReasonUpdating, string(rollout.HoldFailures), corev1.EventTypeWarning},
		{progressing, status.ReasonUpdating, status.ReasonDeadlineExceeded, corev1.EventTypeWarning},
		{progressing, status.ReasonUpdating, status.ReasonNotUpgradable, ""}, // Degraded says so
		{degraded, status.ReasonAsExpected, status.ReasonNotUpgradable, corev1.EventTypeWarning},
		{degraded, status.ReasonAsExpected, status.ReasonNotInjected, corev1.EventTypeWarning},
		{degraded, status.ReasonNotInjected, status.ReasonUpdateFailed, corev1.EventTypeWarning},
		{degraded, status.ReasonUpdateFailed, status.ReasonUpdateFailed, ""},
		{degraded, status.ReasonUpdateFailed, status.ReasonAsExpected, ""},
		{v1beta1.ConditionAvailable, status.ReasonMinimumAvailable, status.ReasonMinimumUnavailable, ""},
	} {
		want := "[]"
		if tt.severity != "" {
			want = fmt.Sprint([]status.News{{Severity: tt.severity, Reason: tt.is, Message: "of " + tt.is}})
		}
		if got := fmt.Sprint(status.Changed(with(tt.kind, tt.was), with(tt.kind, tt.is))); got != want {
			t.Errorf("%s from %q to %q: %s, want %s", tt.kind, tt.was, tt.is, got, want)
		}
	}
}

func TestTheExampleIsTheSamePodAsLongAsNothingChanges(t *testing.T) {
	t.Parallel()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	failed := map[types.NamespacedName]string{key("web-2"): "no such image", key("web-1"): "no memory", key("web-3"): "no disk"}
	notInjected := map[types.NamespacedName]missed.Pod{key("db-1"): {Message: "no webhook"}, key("db-0"): {Message: "too early"}}
	notUpgradable := map[types.NamespacedName]string{key("app-1"): "resources"} // it has the smallest key
	none := maps.All(map[types.NamespacedName]string{})
	long := map[types.NamespacedName]string{key("web"): strings.Repeat("x", 2000)}
	for range 10 { // maps have no order
		for want, got := range map[string]string{
			"shop/web-1: no memory": status.Example(maps.All(failed), maps.All(notUpgradable), maps.All(notInjected)),
			"shop/app-1: resources": status.Example(none, maps.All(notUpgradable), maps.All(notInjected)),
			"shop/db-0: too early":  status.Example(none, none, maps.All(notInjected)),
			"":                      status.Example(none, none, maps.All(map[types.NamespacedName]missed.Pod{})),
		} {
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	if got := status.Example(maps.All(long), none, nil); len(got) > len("shop/web: ")+500 || len(got) < 490 {
		t.Errorf("an example of %d bytes", len(got))
	}
}
