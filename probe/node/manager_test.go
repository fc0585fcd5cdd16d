package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
)

func TestResultIsReportedOnceAndEachFlipToo(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(2 * time.Second)
		w.expect("a m#idle Succeeded idle")
		w.pass(10 * time.Minute)
		if writes, execs, events := w.count(); writes != 1 || execs < 600 || events != 1 {
			t.Errorf("%d writes, %d execs, %d events; want 1, about 600, 1", writes, execs, events)
		}
		w.says(1, "busy")
		w.pass(2 * time.Second)
		w.expect("a m#idle Failed busy")
		if !w.hasEvent("Warning Pod a KruiseProbeFailed", "m#idle", "game", "busy") || !w.hasEvent("Normal Pod a KruiseProbeSucceeded") {
			t.Errorf("events %q", w.events)
		}
	})
}

// Known defect of others: results filed under the container alone.
func TestTwoProbesOfOneContainerAreIndependent(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.answers(func(_, command string) (cri.ExecResult, error) {
			if command == "leader" {
				return cri.ExecResult{ExitCode: 1, Stderr: "follower"}, nil
			}
			return cri.ExecResult{Stdout: "idle"}, nil
		})
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "idle"), execProbe("m#leader", "game", "leader")))
		w.run()
		w.pass(2 * time.Second)
		w.expect("a m#idle Succeeded idle", "a m#leader Failed follower")
		w.pass(time.Minute)
		if writes, _, events := w.count(); writes != 1 || events != 2 {
			t.Errorf("%d writes, %d events", writes, events)
		}
	})
}

func TestSpecChangesTakeEffect(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		slow := execProbe("m#idle", "game", "check")
		slow.Probe.PeriodSeconds = 60
		w.want(entry("a", slow))
		w.run()
		w.pass(10 * time.Second)
		quick := slow
		quick.Probe.PeriodSeconds = 2
		w.want(entry("a", quick))
		_, before, _ := w.count()
		w.pass(20 * time.Second)
		if _, execs, _ := w.count(); execs-before < 9 || execs-before > 11 {
			t.Errorf("%d execs in 20 s every 2 s", execs-before)
		}
		other := execProbe("m#idle", "game", "other")
		w.want(entry("a", other))
		w.pass(5 * time.Second)
		if last := w.execs[len(w.execs)-1]; !strings.HasSuffix(last, " other") {
			t.Errorf("last command %q", last)
		}
		w.want(entry("a", execProbe("m#renamed", "game", "other")))
		w.pass(2 * time.Second)
		w.expect("a m#renamed Succeeded idle")
		w.want()
		w.pass(2 * time.Second)
		w.expect()
		_, before, _ = w.count()
		w.pass(time.Minute)
		if _, execs, _ := w.count(); execs != before {
			t.Errorf("%d execs for a probe that was taken out", execs-before)
		}
	})
}

// A daemon that comes back causes neither flapping nor writes nor Events.
func TestRestartOfTheDaemonChangesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		patient := execProbe("m#idle", "game", "check")
		patient.Probe.FailureThreshold = 3
		w.putPod("a", 1, "game")
		w.putPod("b", -1, "game")
		w.want(entry("a", patient), entry("b", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#idle Succeeded idle", "b m#idle Failed Container(game) is Non-running")
		writes, _, events := w.count()
		w.says(1, "busy")
		w.run()
		w.pass(1500 * time.Millisecond) // fewer failures than count
		w.says(0, "idle")
		w.pass(time.Minute)
		w.expect("a m#idle Succeeded idle", "b m#idle Failed Container(game) is Non-running")
		if n, _, e := w.count(); n != writes || e != events {
			t.Errorf("%d writes and %d events by a restart of the daemon: %q", n-writes, e-events, w.events)
		}
		// What happened while no daemon ran is noticed.
		w.end()
		w.pass(time.Minute)
		w.putPod("a", 2, "game")
		w.deletePod("b")
		w.says(1, "busy")
		w.run()
		w.pass(500 * time.Millisecond)
		w.expect("a m#idle Unknown")
		w.pass(5 * time.Second)
		w.expect("a m#idle Failed busy")
	})
}

func TestRecreatedObjectIsFilled(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		w.deleteObject()
		w.pass(5 * time.Second)
		_, before, _ := w.count()
		w.pass(time.Minute)
		if _, execs, _ := w.count(); execs != before {
			t.Errorf("%d execs without a NodePodProbe", execs-before)
		}
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.pass(2 * time.Second)
		w.expect("a m#idle Succeeded idle")
	})
}

// A runtime that is being restarted says nothing of the application.
func TestRuntimeAwayChangesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		w.answers(func(string, string) (cri.ExecResult, error) {
			return cri.ExecResult{}, fmt.Errorf("exec: %w", cri.ErrUnavailable)
		})
		w.pass(time.Minute)
		w.expect("a m#idle Succeeded idle")
		// One that cannot run the command does: the state is not what it was.
		calls := 0
		w.answers(func(string, string) (cri.ExecResult, error) {
			calls++
			return cri.ExecResult{}, fmt.Errorf("start exec %064x: executable file not found", calls)
		})
		w.pass(5 * time.Second)
		w.expect("a m#idle Unknown start exec …: executable file not found")
		before, _, _ := w.count()
		w.pass(time.Minute)
		if writes, _, _ := w.count(); writes != before {
			t.Errorf("%d writes for the same fault", writes-before)
		}
	})
}

// A command that leaves a child with its output open keeps the runtime from answering.
func TestHangingExecDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		under, most := 0, 0
		w.answer = func(ctx context.Context, _, command string) (cri.ExecResult, error) {
			if command != "hang" {
				return cri.ExecResult{Stdout: "idle"}, nil
			}
			w.mu.Lock()
			under++
			most = max(most, under)
			w.mu.Unlock()
			<-ctx.Done()
			w.mu.Lock()
			under--
			w.mu.Unlock()
			return cri.ExecResult{}, context.Cause(ctx)
		}
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#good", "game", "check"), execProbe("m#hangs", "game", "hang")))
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#good Succeeded idle", "a m#hangs Failed command did not end in time")
		w.pass(time.Minute)
		if most != 1 {
			t.Errorf("%d calls that hang at once", most)
		}
		good := 0
		for _, e := range w.execs {
			if strings.HasSuffix(e, " check") {
				good++
			}
		}
		if good < 60 {
			t.Errorf("the other probe was asked %d times in 65 s", good)
		}
		if writes, _, _ := w.count(); writes > 2 {
			t.Errorf("%d writes", writes)
		}
	})
}
