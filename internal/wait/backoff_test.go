package wait_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refit-project/refit/internal/wait"
)

func TestPausesDoubleUpToTheLast(t *testing.T) {
	t.Parallel()
	backoff := wait.Backoff{First: time.Second, Last: 5 * time.Second}
	var pauses []time.Duration
	for range 5 {
		pauses = append(pauses, backoff.Next())
	}
	backoff.Reset()
	if got := fmt.Sprint(append(pauses, backoff.Next())); got != "[1s 2s 4s 5s 5s 1s]" {
		t.Error(got)
	}
	if got := backoff.After(1_000_000); got != 5*time.Second {
		t.Errorf("%s after a million failures", got)
	}
	if got := (wait.Backoff{First: time.Minute, Last: time.Second}).After(1); got != time.Second {
		t.Errorf("%s, longer than the last", got)
	}
}
