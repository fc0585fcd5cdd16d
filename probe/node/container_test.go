package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
)

func TestContainerLife(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 0, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		w.expect() // it was never started
		w.putPod("a", 1, "game")
		w.pass(time.Second)
		w.expect("a m#idle Succeeded idle")
		w.containerStopped("a", 1) // long before the pod's status says so
		w.pass(200 * time.Millisecond)
		w.expect("a m#idle Failed Container(game) is Non-running")
		_, asked, _ := w.count()
		w.putPod("a", -1, "game")
		w.pass(time.Minute)
		if _, execs, _ := w.count(); execs != asked {
			t.Errorf("%d execs in a container that does not run", execs-asked)
		}
		w.answers(func(string, string) (cri.ExecResult, error) {
			time.Sleep(900 * time.Millisecond)
			return cri.ExecResult{}, nil
		})
		w.putPod("a", 2, "game")
		w.pass(500 * time.Millisecond)
		w.expect("a m#idle Unknown")
		w.pass(time.Second)
		w.expect("a m#idle Succeeded")
		w.deletePod("a")
		w.pass(time.Second)
		w.expect()
	})
}

// What a container takes with it when it ends is no answer of the application, whatever the runtime makes of it.
func TestCommandThatEndsWithItsContainer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() (cri.ExecResult, error){
		"killed": func() (cri.ExecResult, error) { return cri.ExecResult{ExitCode: 137}, nil },
		"refused": func() (cri.ExecResult, error) {
			return cri.ExecResult{}, errors.New("container is in CONTAINER_EXITED state")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.putPod("a", 1, "game")
				w.want(entry("a", execProbe("m#idle", "game", "check")))
				w.run()
				w.pass(5 * time.Second)
				ended := false
				w.answers(func(string, string) (cri.ExecResult, error) {
					if !ended {
						ended = true
						go func() {
							time.Sleep(300 * time.Millisecond) // the runtime's event comes after its answer
							w.containerStopped("a", 1)
						}()
					}
					return answer()
				})
				w.pass(5 * time.Second)
				w.expect("a m#idle Failed Container(game) is Non-running")
				if writes, _, events := w.count(); writes != 2 || events != 2 || !w.hasEvent("KruiseProbeFailed", "Non-running") {
					t.Errorf("%d writes and %d events, want 2 of each: %q", writes, events, w.events)
				}
			})
		})
	}
}

// A probe that failed already has not failed anew, but why is another matter.
func TestEndOfAContainerWhoseProbeFailed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.says(1, "busy")
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#idle Failed busy")
		w.containerStopped("a", 1)
		w.pass(500 * time.Millisecond)
		w.expect("a m#idle Failed Container(game) is Non-running")
		if _, _, events := w.count(); events != 1 {
			t.Errorf("%d events: %q", events, w.events)
		}
	})
}

// A command that was killed by somebody else, in a container that lives on, has failed.
func TestKilledCommandFails(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.says(137, "")
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#idle Failed exit code 137")
	})
}
