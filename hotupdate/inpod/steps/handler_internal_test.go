package steps

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/procfs"
)

// young is when a process started that is a second old, in ticks after boot.
func young(t *testing.T) uint64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return uint64(now.Nano()/int64(10*time.Millisecond)) - 100
}

// A signal would end a program that has just started and has not installed its handler. One that has been running for long has none.
func TestHandlerOfAProgramThatHasJustStartedIsWaitedFor(t *testing.T) {
	t.Parallel()
	const none, hup, golang = "SigCgt:\t0000000000000000\n", "SigCgt:\t0000000000000001\n", "SigCgt:\tfffffffd7fc1feff\n"
	for name, tt := range map[string]struct {
		signal  syscall.Signal
		old     bool
		handles string
		later   bool // it installs a handler after a second
		busy    int  // for so many seconds it uses a processor
		others  bool // another process is meant too
		within  time.Duration
		took    time.Duration
	}{
		"it has none":                       {signal: syscall.SIGHUP, handles: none, took: 5 * time.Second},
		"it has none, and the step 4 s":     {signal: syscall.SIGHUP, handles: none, within: 4 * time.Second, took: 2 * time.Second},
		"it is in Go, and the step 10 s":    {signal: syscall.SIGHUP, handles: golang, busy: 9, within: 10 * time.Second, took: 7500 * time.Millisecond},
		"it has one":                        {signal: syscall.SIGHUP, handles: hup},
		"of another signal":                 {signal: syscall.SIGUSR1, handles: hup, took: 5 * time.Second},
		"it is a program in Go":             {signal: syscall.SIGHUP, handles: golang, took: time.Second},
		"it is one that is starting":        {signal: syscall.SIGHUP, handles: golang, busy: 2, took: 3 * time.Second},
		"it is one that starts slowly":      {signal: syscall.SIGHUP, handles: golang, busy: 7, took: 8 * time.Second},
		"it is an old one in Go":            {signal: syscall.SIGHUP, handles: golang, old: true},
		"it installs one":                   {signal: syscall.SIGHUP, handles: none, later: true, took: time.Second},
		"it has been running for long":      {signal: syscall.SIGHUP, handles: none, old: true},
		"the kernel does not say":           {signal: syscall.SIGHUP},
		"it cannot handle it: KILL":         {signal: syscall.SIGKILL, handles: none},
		"it cannot handle it: STOP":         {signal: syscall.SIGSTOP, handles: none},
		"which of several is meant is open": {signal: syscall.SIGHUP, handles: none, others: true},
	} {
		tree := procfs.NewTree(t)
		p := procfs.Process{PID: 7, Start: young(t), Comm: "game", Cmdline: "game\x00"}
		if tt.old {
			p.Start = 1
		}
		tree.Put(p)
		tree.Status(7, procfs.StatusText(p)+tt.handles)
		if tt.others {
			p.PID = 8
			tree.Put(p)
		}
		fs, err := signal.New(tree.Root)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			var program sync.WaitGroup
			defer program.Wait()
			if tt.later {
				program.Go(func() {
					time.Sleep(time.Second)
					tree.Status(7, procfs.StatusText(p)+hup)
				})
			}
			if tt.busy > 0 {
				program.Go(func() {
					for p.CPU = range uint64(tt.busy * 10) {
						time.Sleep(100 * time.Millisecond)
						tree.Stat(p)
					}
				})
			}
			ctx := t.Context()
			if tt.within > 0 {
				limited, cancel := context.WithTimeout(ctx, tt.within)
				defer cancel()
				ctx = limited
			}
			began := time.Now()
			signaler{process.Finder{Config: process.Config{Comm: "game"}, FS: fs}, tt.signal}.awaitHandler(ctx)
			if took := time.Since(began); took < tt.took || took > tt.took+2*handlerInterval {
				t.Errorf("%s: waited for %s, want %s", name, took, tt.took)
			}
		})
	}
}

func TestSignalThatCannotBeSentIsAnError(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Put(procfs.Process{PID: 7, Start: 1, Comm: "game", Cmdline: "game\x00"})
	fs, err := signal.New(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	game := process.Config{Comm: "game"}
	if err := (signaler{process.Finder{Config: game}, syscall.SIGHUP}).Signal(t.Context()); err == nil {
		t.Error("no error where processes cannot be seen")
	}
	if err := (signaler{process.Finder{Config: game, FS: fs}, syscall.SIGHUP}).Signal(t.Context()); !errors.Is(err, signal.ErrForeign) {
		t.Errorf("into another PID namespace: %v", err)
	}
	if err := (signaler{process.Finder{Config: process.Config{Comm: "gone"}, FS: fs}, syscall.SIGHUP}).Signal(t.Context()); !errors.Is(err, signal.ErrNotFound) {
		t.Errorf("to nobody: %v", err)
	}
}
