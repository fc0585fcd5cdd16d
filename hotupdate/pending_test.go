package hotupdate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
)

// A pending reload, for files that were put in place before the program ran or could be found, is remembered after a
// restart.
func TestThatTheProgramHasToBeToldOutlastsARestart(t *testing.T) {
	t.Parallel()
	fails := errors.New("not found")
	b := newBench(t, nil, nil)
	b.apply(t, hotupdate.Request{Version: "v1", NoReload: true, Sources: inline("v1", files{"a": "1"}).Sources})
	if b.ReloadPending() {
		t.Error("a program that is started afterwards has to be told")
	}
	b.apply(t, hotupdate.Request{Version: "v2", NoReload: true, ReloadLater: true, Sources: inline("v2", files{"a": "2"}).Sources})
	for _, tt := range []struct {
		name   string
		reload error
		untold bool // afterwards
	}{{"failed", fails, true}, {"succeeded", nil, false}} {
		b.Close()
		b.open(t, func(c *hotupdate.Config) {
			if tt.reload != nil {
				c.Reload = failing(tt.reload.Error())
			}
		})
		if !b.ReloadPending() {
			t.Errorf("before the reload that %s: forgotten", tt.name)
		}
		if err := b.Reload(t.Context()); (err == nil) != (tt.reload == nil) {
			t.Error(err)
		}
		if b.ReloadPending() != tt.untold {
			t.Errorf("after the reload that %s: %t", tt.name, b.ReloadPending())
		}
	}
	b.Close()
	b.open(t, nil)
	if b.ReloadPending() {
		t.Error("told once more")
	}
	b.checkTold(t, "v2")
}

func TestAnUpdateThatIsToldOfSettlesTheOneBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, hotupdate.Request{Version: "v1", NoReload: true, ReloadLater: true, Sources: inline("v1", files{"a": "1"}).Sources})
	b.apply(t, inline("v2", files{"a": "2"}))
	if b.ReloadPending() {
		t.Error("has to be told once more")
	}
}

// After a kill during an update the program may have read files that are no longer there. A second kill does not hide that.
func TestAnInterruptedUpdateIsPendingUntilTheProgramIsReloaded(t *testing.T) {
	t.Parallel()
	for last := 1; ; last++ {
		b := newBench(t, nil, nil)
		b.Close()
		switch runVictim(t, b.dir, last) {
		case "":
			t.Fatal("never killed after the reload")
		case "reloaded":
			for range 2 {
				b.open(t, nil)
				if !b.ReloadPending() {
					t.Error("forgotten")
				}
				b.Close()
			}
			b.open(t, nil)
			if err := b.Reload(t.Context()); err != nil || b.ReloadPending() {
				t.Errorf("after the reload: %v, %t", err, b.ReloadPending())
			}
			return
		}
	}
}

// If a step is never possible here, such as a signal without a shared PID namespace, the files stay, the other steps run,
// and the result names the skipped step.
func TestAStepThatIsNotPossibleHereIsLeftOut(t *testing.T) {
	t.Parallel()
	var b *bench
	impossible := action.Action{Name: "signal", Step: step(func(context.Context, action.Release) error { return action.ErrImpossible })}
	b = newBench(t, nil, func(c *hotupdate.Config) { c.Reload = append([]action.Action{impossible}, c.Reload...) })
	res := b.apply(t, inline("v1", files{"a": "1"}))
	if !strings.Contains(res.ReloadSkipped, "signal") || !strings.Contains(b.Status().ReloadSkipped, "signal") {
		t.Errorf("result %q, status %+v", res.ReloadSkipped, b.Status())
	}
	b.check(t, files{"a": "1"})
	b.checkTold(t, "v1")
	b.Close()
	b.open(t, func(c *hotupdate.Config) {
		c.Reload, c.Verify.Checks = []action.Action{impossible}, failing("old content")
	})
	if _, err := b.Apply(t.Context(), inline("v2", files{"a": "2"})); !errors.Is(err, hotupdate.ErrVerify) || !strings.Contains(err.Error(), "the program was not reloaded") {
		t.Errorf("err = %v", err)
	}
	b.check(t, files{"a": "1"})
}
