package poll_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/test/kit/poll"
)

// failing keeps what a test fails with, and ends no test.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatal(args ...any) {
	f.said = fmt.Sprint(args...)
	panic(f)
}

func TestUntilEndsWhenItIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		poll.Until(t, "a second passes", func() bool { return time.Since(began) >= time.Second })
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestUntilSaysWhatHasNotHappened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		func() {
			defer func() { _ = recover() }()
			poll.Until(f, "the pod is ready", func() bool { return false }, func() string { return "it is pending" })
		}()
		if !strings.Contains(f.said, "the pod is ready") || !strings.Contains(f.said, "it is pending") {
			t.Errorf("failed with %q", f.said)
		}
	})
}
