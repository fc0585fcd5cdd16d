package node_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
)

func TestBurstIsOneWrite(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var entries []v1alpha1.PodProbe
		for i := range 20 {
			name := fmt.Sprintf("p%02d", i)
			w.putPod(name, 1, "game")
			entries = append(entries, entry(name, execProbe("m#idle", "game", "check")))
		}
		w.want(entries...)
		w.run()
		w.pass(30 * time.Second)
		before, _, _ := w.count()
		for i := range 20 {
			w.containerStopped(fmt.Sprintf("p%02d", i), 1)
		}
		w.pass(5 * time.Second)
		if writes, _, _ := w.count(); writes-before != 1 {
			t.Errorf("%d writes for 20 containers that ended together", writes-before)
		}
		if got := strings.Join(w.shows(), "\n"); strings.Count(got, "Non-running") != 20 {
			t.Errorf("status:\n%s", got)
		}
	})
}

func TestNewProbeHasAWhileToAnswerBeforeItIsCalledUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes  time.Duration
		then   string // after 2.5 s
		writes int    // after a minute
	}{
		"in its first second": {900 * time.Millisecond, "a m#idle Succeeded", 1},
		"later":               {4 * time.Second, "a m#idle Unknown", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.answers(func(string, string) (cri.ExecResult, error) {
					time.Sleep(tc.takes)
					return cri.ExecResult{}, nil
				})
				slow := execProbe("m#idle", "game", "check")
				slow.Probe.TimeoutSeconds = 5
				w.putPod("a", 1, "game")
				w.want(entry("a", slow))
				w.run()
				w.pass(2500 * time.Millisecond)
				w.expect(tc.then)
				w.pass(time.Minute)
				w.expect("a m#idle Succeeded")
				if writes, _, _ := w.count(); writes != tc.writes {
					t.Errorf("%d writes, want %d", writes, tc.writes)
				}
			})
		})
	}
}

// Writes for others in the meantime do not show it any sooner, or never.
func TestNewProbeIsCalledUnknownInTimeBesideBusyNeighbours(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		begin := time.Now()
		w.answers(func(id, _ string) (cri.ExecResult, error) {
			if id == instanceID("slow", "game", 1) {
				time.Sleep(4 * time.Second)
			}
			if time.Since(begin) < 500*time.Millisecond {
				return cri.ExecResult{ExitCode: 1}, nil
			}
			return cri.ExecResult{}, nil
		})
		slow := execProbe("m#idle", "game", "check")
		slow.Probe.TimeoutSeconds = 5
		w.putPod("busy", 1, "game")
		w.putPod("slow", 1, "game")
		w.want(entry("busy", execProbe("m#idle", "game", "check")), entry("slow", slow))
		w.run()
		shown := func() bool {
			return slices.ContainsFunc(w.shows(), func(line string) bool { return strings.HasPrefix(line, "slow ") })
		}
		w.pass(1900 * time.Millisecond)
		if writes, _, _ := w.count(); shown() || writes < 2 {
			t.Errorf("after 1.9 s and %d writes: %q", writes, w.shows())
		}
		w.pass(700 * time.Millisecond)
		if !shown() {
			t.Errorf("after 2.6 s: %q", w.shows())
		}
	})
}

// An output with the time in it is a change each second, and worth a write now and then.
func TestMessagesAloneAreWrittenSlowly(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.answers(func(string, string) (cri.ExecResult, error) { return cri.ExecResult{Stdout: time.Now().String()}, nil })
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "date")))
		w.run()
		w.pass(10 * time.Minute)
		if writes, _, events := w.count(); writes < 50 || writes > 65 || events != 1 {
			t.Errorf("%d writes and %d events in ten minutes; want one each ten seconds, and 1", writes, events)
		}
	})
}

func TestWritesAreRetriedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.fail = &url.Error{Op: "Patch", URL: "https://api", Err: errors.New("connection refused")}
		w.run()
		w.pass(2 * time.Minute)
		w.says(1, "busy")
		w.pass(10 * time.Second)
		if w.attempt > 20 || w.attempt < 5 {
			t.Errorf("%d attempts in two minutes", w.attempt)
		}
		w.mu.Lock()
		w.fail = nil
		w.mu.Unlock()
		w.pass(40 * time.Second)
		w.expect("a m#idle Failed busy")
		written := map[string]float64{}
		for _, m := range w.metrics("refit_probe_status_writes_total") {
			written[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
		if written["error"] != float64(w.attempt-1) || written["ok"] != 1 {
			t.Errorf("counted %v of %d attempts", written, w.attempt)
		}
	})
}

// A write that got no response is retried although nothing changes any more.
func TestAWriteWithoutAResponseIsRetried(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.hang = true
		w.run()
		w.pass(5 * time.Second)
		w.mu.Lock()
		w.hang = false
		w.mu.Unlock()
		w.pass(10 * time.Second)
		w.expect("a m#idle Succeeded idle")
	})
}

// Also where other probes have just been written.
func TestAChangedMessageIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var players, state atomic.Int32
		w.answers(func(container, _ string) (cri.ExecResult, error) {
			if container == instanceID("other", "game", 1) {
				return cri.ExecResult{ExitCode: state.Load()}, nil
			}
			return cri.ExecResult{Stdout: fmt.Sprintf("players=%d", players.Load())}, nil
		})
		w.putPod("a", 1, "game")
		w.putPod("other", 1, "game")
		w.want(entry("a", execProbe("m#players", "game", "check")), entry("other", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(30 * time.Second)
		for i := range int32(5) {
			state.Store(1 - state.Load())
			w.pass(2 * time.Second)
			players.Store(i + 1)
			w.pass(1500 * time.Millisecond)
			if want := fmt.Sprintf("a m#players Succeeded players=%d", i+1); w.shows()[0] != want {
				t.Errorf("status %q, want %q", w.shows()[0], want)
			}
			w.pass(15 * time.Second)
		}
	})
}

// The time of the last probe belongs to the published result: a write for another probe does not renew it.
func TestWriteForAnotherProbeDoesNotRenewTheTimeOfAResult(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		times := func() (idle, leader time.Time) {
			w.mu.Lock()
			defer w.mu.Unlock()
			states := w.object.Status.PodProbeStatuses[0].ProbeStates
			return states[0].LastProbeTime.Time, states[1].LastProbeTime.Time
		}
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "idle"), execProbe("m#leader", "game", "leader")))
		w.run()
		w.pass(10 * time.Second)
		idleBefore, leaderBefore := times()
		w.answers(func(_, command string) (cri.ExecResult, error) {
			if command == "leader" {
				return cri.ExecResult{ExitCode: 1, Stdout: "lost"}, nil
			}
			return cri.ExecResult{Stdout: "idle"}, nil
		})
		w.pass(5 * time.Second)
		w.expect("a m#idle Succeeded idle", "a m#leader Failed lost")
		if idle, leader := times(); !idle.Equal(idleBefore) || !leader.After(leaderBefore) {
			t.Errorf("idle was probed at %s and %s, leader at %s and %s", idleBefore, idle, leaderBefore, leader)
		}
	})
}
