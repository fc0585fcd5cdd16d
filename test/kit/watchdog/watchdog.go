// Package watchdog finds code that does not return, in tests with hostile text.
package watchdog

import (
	"runtime/debug"
	"testing"
	"time"
)

const (
	slow = time.Second      // is logged
	hung = 10 * time.Second // of a machine under load, on which a second is too little
)

// Watch runs code, and ends the test if it does not return: what cannot be stopped goes on in the background.
func Watch(t testing.TB, do func()) {
	t.Helper()
	done, began := make(chan any, 1), time.Now()
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- string(debug.Stack())
			}
			close(done)
		}()
		do()
	}()
	select {
	case panicked, ok := <-done:
		if ok {
			t.Fatalf("panic: %v", panicked)
		}
		if took := time.Since(began); took > slow {
			t.Logf("it took %s", took)
		}
	case <-time.After(hung):
		t.Fatalf("it has not returned within %s", hung)
	}
}
