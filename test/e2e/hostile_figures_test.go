package e2e_test

import (
	"errors"
	"testing"
	"time"
)

// TestFiguresOfARunThatIsCutOff reads the figures of a canary while it goes on: they take nothing from what is judged at the end.
func TestFiguresOfARunThatIsCutOff(t *testing.T) {
	t.Parallel()
	c := &canary{name: "request"}
	if got, want := c.figures(), "request: 0 operations, p99 0s"; got != want {
		t.Errorf("before the first operation: %q, want %q", got, want)
	}
	for n := 200; n > 0; n-- {
		c.took = append(c.took, time.Duration(n)*time.Second)
	}
	c.besideOthers = 1500 * time.Millisecond
	c.wrong = []error{errors.New("first"), errors.New("second")}
	want := "request: 200 operations, p99 3m19s, beside other objects 1.5s, 2 wrong, the last: second"
	for range 2 {
		if got := c.figures(); got != want {
			t.Errorf("figures %q, want %q", got, want)
		}
	}
	if p99, wrong := c.forget(); p99 != 199*time.Second || len(wrong) != 2 {
		t.Errorf("after the figures: p99 %s and %d wrong results", p99, len(wrong))
	}
}
