package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// held are pods "namespace/name" that have counted for so long at now.
func held(now time.Time, since map[string]time.Duration) (holding, []*Pod) {
	h, pods := holding{}, []*Pod{}
	for uid, ago := range since {
		namespace, name := uid[:1], uid[2:]
		pods = append(pods, &Pod{Key: types.NamespacedName{Namespace: namespace, Name: name}, UID: types.UID(uid)})
		h[types.UID(uid)] = now.Add(-ago)
	}
	return h, pods
}

// Which namespace holds up no others, what is left to hold them up, and until when the pods of a namespace are held up by others.
func TestWhoHoldsUpWhom(t *testing.T) {
	t.Parallel()
	const old, minute = holdLimit, time.Minute
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		since  map[string]time.Duration
		exempt string
		left   int
		until  map[string]time.Duration
	}{
		"nobody":                   {nil, "", 0, map[string]time.Duration{"a": 0}},
		"none for long":            {map[string]time.Duration{"a/1": old - 1, "b/1": 0}, "", 2, map[string]time.Duration{"a": old, "b": 1, "c": 1}},
		"one for long":             {map[string]time.Duration{"a/1": old, "a/2": minute, "b/1": 2 * minute}, "a", 2, map[string]time.Duration{"a": 8 * minute, "b": 9 * minute, "c": 8 * minute}},
		"only one namespace":       {map[string]time.Duration{"a/1": old, "a/2": minute}, "a", 1, map[string]time.Duration{"a": 0, "b": 9 * minute}},
		"the one with more":        {map[string]time.Duration{"a/1": old, "b/1": old, "b/2": old + 1}, "b", 1, map[string]time.Duration{"c": 0}},
		"the first of several":     {map[string]time.Duration{"d/1": old, "c/1": old, "b/1": old, "e/1": old}, "b", 3, map[string]time.Duration{"c": 0}},
		"young ones do not matter": {map[string]time.Duration{"a/1": 0, "a/2": 0, "b/1": old}, "b", 2, map[string]time.Duration{"a": 0, "b": old}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 { // maps have no order
				h, pods := held(now, tc.since)
				if got := h.exempt(pods, now); got != tc.exempt {
					t.Errorf("%q holds up no others, want %q", got, tc.exempt)
				}
				if got := len(h.without(pods, tc.exempt, now)); got != tc.left {
					t.Errorf("%d pods hold up others, want %d", got, tc.left)
				}
				next, until := h.next(pods, now), map[string]time.Duration{}
				for namespace := range tc.until {
					until[namespace] = 0
					if at := next(namespace); !at.IsZero() {
						until[namespace] = at.Sub(now)
					}
				}
				if diff := cmp.Diff(tc.until, until); diff != "" {
					t.Errorf("until when others hold it up (-want +got):\n%s", diff)
				}
			}
		})
	}
}
