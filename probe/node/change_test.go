package node_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
)

// replaceObject puts another NodePodProbe in the place of the first, as a watch shows a deletion and a creation that
// happened while it was interrupted.
func (w *world) replaceObject() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.object = w.object.DeepCopy()
	w.object.UID += "-replaced"
	w.object.Status = v1alpha1.NodePodProbeStatus{}
	w.objectSource.Modify(w.object)
}

func TestProbesGoOnWhenTheNodePodProbeIsReplaced(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		_, before, eventsBefore := w.count()
		w.replaceObject()
		w.pass(2 * time.Second)
		w.expect("a m#idle Succeeded idle")
		w.says(1, "busy")
		w.pass(8 * time.Second)
		w.expect("a m#idle Failed busy")
		if _, execs, events := w.count(); execs-before < 9 || execs-before > 11 || events-eventsBefore != 1 {
			t.Errorf("%d execs in 10 s and %d events, want 10 and the one of the failure", execs-before, events-eventsBefore)
		}
	})
}

// Two containers are not one: what was found of the first is not said of the second.
func TestProbeOfAnotherContainerStartsAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game", "lobby")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#idle Succeeded idle")
		w.answers(func(container, _ string) (cri.ExecResult, error) {
			if strings.Contains(container, "lobby") {
				return cri.ExecResult{ExitCode: 1, Stdout: "full"}, nil
			}
			return cri.ExecResult{Stdout: "idle"}, nil
		})
		patient := execProbe("m#idle", "lobby", "check")
		patient.Probe.FailureThreshold = 10
		w.want(entry("a", patient))
		w.pass(5 * time.Second)
		w.expect("a m#idle Unknown")
		w.pass(10 * time.Second)
		w.expect("a m#idle Failed full")
		if last := w.execs[len(w.execs)-1]; !strings.HasPrefix(last, instanceID("a", "lobby", 1)) {
			t.Errorf("last command %q", last)
		}
	})
}

func TestResultsOfWhatIsNotProbedAnyMoreDisappear(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world){
		"the container is another": func(w *world) {
			w.want(entry("a", execProbe("m#idle", "renamed", "check")), entry("b", execProbe("m#idle", "game", "check")))
		},
		"the pod is left out": func(w *world) { w.want(entry("b", execProbe("m#idle", "game", "check"))) },
		"the pod was made again": func(w *world) {
			w.deletePod("a")
			w.pass(time.Second)
			w.putPodWith("a", 1, func(p *corev1.Pod) { p.UID = "another" }, "game")
		},
		"the pod has been deleted":   func(w *world) { w.deletePod("a") },
		"its probes are left out":    func(w *world) { w.want(entry("a"), entry("b", execProbe("m#idle", "game", "check"))) },
		"its new pod lacks the name": func(w *world) { w.putPodWith("a", 1, func(p *corev1.Pod) { p.UID = "another" }, "renamed") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.putPod("a", 1, "game")
				w.putPod("b", 1, "game")
				w.want(entry("a", execProbe("m#idle", "game", "check")), entry("b", execProbe("m#idle", "game", "check")))
				w.run()
				w.pass(5 * time.Second)
				w.expect("a m#idle Succeeded idle", "b m#idle Succeeded idle")
				change(w)
				w.pass(10 * time.Second)
				w.expect("b m#idle Succeeded idle")
			})
		})
	}
}

// Exec probes start 100 ms apart, so that few of them wait for each other. A change at any moment does not move them.
func TestAChangedProbeKeepsItsAlignment(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var at []time.Duration
		w.answers(func(string, string) (cri.ExecResult, error) {
			at = append(at, time.Duration(time.Now().UnixNano())%(100*time.Millisecond))
			return cri.ExecResult{Stdout: "idle"}, nil
		})
		w.putPod("a", 1, "game")
		probe := execProbe("m#idle", "game", "check")
		w.want(entry("a", probe))
		w.run()
		w.pass(5 * time.Second)
		for i := range 5 {
			w.pass(1037 * time.Millisecond)
			probe.Probe.PeriodSeconds = int32(1 + i%3)
			probe.Probe.TimeoutSeconds = int32(2 + i)
			w.want(entry("a", probe))
			w.pass(7 * time.Second)
		}
		if len(at) < 15 {
			t.Fatalf("%d runs", len(at))
		}
		for i, phase := range at[1:] { // the first one runs when the probe is new
			if phase != at[1] {
				t.Errorf("run %d begins %s after the moment, the second %s", i+1, phase, at[1])
			}
		}
	})
}

// Changing a probe whose command does not end must not take the turns of others by starting one command after the other.
func TestChangedProbeWaitsForTheCommandOfTheOneBefore(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var running, most atomic.Int32
		w.answer = func(ctx context.Context, _, _ string) (cri.ExecResult, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-ctx.Done()
			return cri.ExecResult{}, context.Cause(ctx)
		}
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(2500 * time.Millisecond)
		w.want(entry("a", execProbe("m#idle", "game", "another")))
		w.pass(20 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if most.Load() != 1 || !slices.Contains(w.execs, instanceID("a", "game", 1)+" another") {
			t.Errorf("%d commands at the same time: %q", most.Load(), w.execs)
		}
	})
}
