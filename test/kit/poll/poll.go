// Package poll waits in tests for what other goroutines and processes do.
package poll

import (
	"fmt"
	"testing"
	"time"
)

const (
	interval = 5 * time.Millisecond
	timeout  = 30 * time.Second
)

// Until calls done every few milliseconds until it returns true. After half a minute it fails the test; what says what has
// not happened, and state, if there is one, what there is instead.
func Until(tb testing.TB, what string, done func() bool, state ...func() string) {
	tb.Helper()
	deadline, tick := time.NewTimer(timeout), time.NewTicker(interval)
	defer deadline.Stop()
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			text := fmt.Sprintf("not within %s: %s", timeout, what)
			for _, now := range state {
				text += "; " + now()
			}
			tb.Fatal(text)
		}
	}
}
