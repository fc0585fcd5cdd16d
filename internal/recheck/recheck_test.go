package recheck_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/internal/recheck"
)

func TestTheEarliestTimeCountsAndZeroMeansNever(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later, never := now.Add(time.Minute), time.Time{}
	for name, tt := range map[string]struct {
		got  recheck.At
		want time.Time
	}{
		"never":             {recheck.At{}.Or(never), never},
		"only the other":    {recheck.At{}.Or(now), now},
		"only the first":    {recheck.On(now).Or(never), now},
		"the other":         {recheck.On(later).Or(now), now},
		"the first":         {recheck.On(now).Or(later), now},
		"the last of three": {recheck.On(later).Or(never, now), now},
	} {
		if !tt.got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, tt.got, tt.want)
		}
	}
	for at, want := range map[recheck.At]time.Duration{{}: 0, recheck.On(later): time.Minute, recheck.On(now.Add(-time.Hour)): time.Second} {
		if got := at.In(now, time.Second); got != want {
			t.Errorf("at %s: in %s, want %s", at, got, want)
		}
	}
	if (recheck.At{}).Passed(now) || recheck.On(later).Passed(now) || !recheck.On(now).Passed(now) || !recheck.On(now).Passed(later) {
		t.Error("passed")
	}
}
