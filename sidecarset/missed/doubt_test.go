package missed_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/sidecarset/missed"
)

// Pods that nobody wants injected, or that are older, do not tell that the next pod would miss its injection.
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
		if got := missed.DoubtfulUntil(map[types.NamespacedName]missed.Pod{key("a", 0): tc.pod}, start); !got.Equal(tc.want) {
			t.Errorf("%s: until %s, want %s", name, got, tc.want)
		}
	}
}
