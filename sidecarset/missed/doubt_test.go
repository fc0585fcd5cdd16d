package missed_test

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/missed"
)

// Pods that nobody wants to be injected, or that are older, do not show that the next pod would not be injected.
func TestDoubtIsOnlyAboutPodsThatMissedTheirInjectionLately(t *testing.T) {
	t.Parallel()
	lately := metav1.NewTime(start.Add(-10 * time.Minute))
	for name, tc := range map[string]struct {
		pod  missed.Pod
		want time.Time
	}{
		"missed lately":     {missed.Pod{Reason: missed.NotReached, Created: lately}, start.Add(50 * time.Minute)},
		"missed long ago":   {missed.Pod{Reason: missed.NotReached, Created: metav1.NewTime(start.Add(-time.Hour))}, time.Time{}},
		"opted out":         {missed.Pod{Reason: missed.Skipped, Created: lately}, time.Time{}},
		"excluded":          {missed.Pod{Reason: missed.Excluded, Created: lately}, time.Time{}},
		"of an older label": {missed.Pod{Reason: missed.Older, Created: lately}, time.Time{}},
	} {
		got := missed.Doubtful(maps.All(map[types.NamespacedName]missed.Pod{key("a", 0): tc.pod}), start)
		if !got["shop"].Equal(tc.want) || len(got) > 1 {
			t.Errorf("%s: until %s, want %s", name, got, tc.want)
		}
	}
}

func TestDoubtLastsAsLongAsAboutTheYoungestPod(t *testing.T) {
	t.Parallel()
	pods := map[types.NamespacedName]missed.Pod{}
	for i, minutes := range []time.Duration{30, 10, 50} {
		pods[key("a", i)] = missed.Pod{Reason: missed.NotReached, Created: metav1.NewTime(start.Add(-minutes * time.Minute))}
	}
	for range 10 { // maps have no order
		if got := missed.Doubtful(maps.All(pods), start)["shop"]; !got.Equal(start.Add(50 * time.Minute)) {
			t.Errorf("until %s", got)
		}
	}
}

// A tenant labelled a pod of his own after its creation, and no pod of anybody was evicted for an hour.
func TestAPodThatMissedItsInjectionCastsDoubtOnItsOwnNamespaceOnly(t *testing.T) {
	t.Parallel()
	pods := map[types.NamespacedName]missed.Pod{
		{Namespace: "tenant", Name: "labelled-later"}: {Reason: missed.NotReached, Created: metav1.NewTime(start)},
		{Namespace: "shop", Name: "web"}:              {Reason: missed.Skipped, Created: metav1.NewTime(start)},
	}
	if got := missed.Doubtful(maps.All(pods), start); len(got) != 1 || got["tenant"].IsZero() {
		t.Errorf("doubt in %v", got)
	}
}
