package node_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
)

// The watch of pods may be behind the watch of the NodePodProbe, and ahead of it.
func TestPodThatComesLateOrGoesEarlyIsNoFault(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		w.putPod("a", 1, "game")
		w.pass(5 * time.Second)
		w.expect("a m#idle Succeeded idle")
		w.deletePod("a")
		w.pass(time.Minute)
		if w.expect(); w.hasEvent("ProbeIgnored") {
			t.Errorf("events %q", w.events)
		}
	})
}

// Nothing else happens on the node: an Event says, once, that an entry is for none of its pods.
func TestEntryForAnUnknownPodIsReportedInTime(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.want(entry("absent", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(9 * time.Second)
		if w.hasEvent("ProbeIgnored") {
			t.Errorf("too early: %q", w.events)
		}
		w.pass(2 * time.Second)
		if !w.hasEvent("Warning NodePodProbe node-1 ProbeIgnored", "shop/absent") {
			t.Errorf("after 11 s: %q", w.events)
		}
		w.pass(time.Hour)
		if _, _, events := w.count(); events != 1 {
			t.Errorf("events %q", w.events)
		}
	})
}

// A NodePodProbe is written by others: whatever it says, the daemon probes only pods of its node.
func TestPodOfAnotherNodeIsNotProbed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPodWith("a", 1, func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(11 * time.Second)
		w.expect()
		if _, execs, _ := w.count(); execs != 0 || !w.hasEvent("ProbeIgnored", "shop/a", "is on node node-1") {
			t.Errorf("%d commands, events %q", execs, w.events)
		}
	})
}

// Probes that are wanted together do not all start at the same moment.
func TestNewProbesStartOneAfterTheOther(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		moments := map[time.Duration]bool{}
		begin := time.Now()
		w.answers(func(string, string) (cri.ExecResult, error) {
			if since := time.Since(begin); since < 900*time.Millisecond {
				w.mu.Lock()
				moments[since] = true
				w.mu.Unlock()
			}
			return cri.ExecResult{}, nil
		})
		var entries []v1alpha1.PodProbe
		for i := range 40 {
			name := fmt.Sprintf("p%02d", i)
			w.putPod(name, 1, "game")
			entries = append(entries, entry(name, execProbe("m#idle", "game", "check")))
		}
		w.want(entries...)
		w.run()
		w.pass(10 * time.Second)
		if len(moments) < 10 {
			t.Errorf("40 probes start at %d different moments of the first second", len(moments))
		}
		if n := w.metric("refit_probe_lateness_seconds").GetHistogram().GetSampleCount(); n < 360 {
			t.Errorf("the lateness of %d probes is known", n)
		}
	})
}

// What another client writes into the status does not stay.
func TestStatusThatAnotherClientHasWrittenIsRestored(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(30 * time.Second)
		w.mu.Lock()
		w.object = w.object.DeepCopy()
		w.object.Status = v1alpha1.NodePodProbeStatus{}
		w.objectSource.Modify(w.object)
		w.mu.Unlock()
		w.pass(15 * time.Second)
		w.expect("a m#idle Succeeded idle")
	})
}

func TestAnswersAreCounted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.run()
		w.pass(5500 * time.Millisecond)
		w.says(1, "busy")
		w.pass(5 * time.Second)
		w.answers(func(string, string) (cri.ExecResult, error) {
			return cri.ExecResult{}, fmt.Errorf("exec: %w", cri.ErrUnavailable)
		})
		w.pass(10 * time.Second)
		counted := map[string]float64{}
		for _, m := range w.metrics("refit_probe_results_total") {
			for _, label := range m.GetLabel() {
				if label.GetName() == "result" {
					counted[label.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
		if counted["Succeeded"] < 4 || counted["Failed"] < 4 || counted["none"] < 3 || len(counted) != 3 {
			t.Errorf("counted %v", counted)
		}
	})
}

// A pod that changes still has the same errors, about which there is an Event already.
func TestFaultIsReportedOnceHoweverOftenThePodChanges(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.want(entry("a", execProbe("m#bad", "absent", "check")))
		w.putPod("a", 1, "game")
		w.run()
		for range 5 {
			w.putPodWith("a", 1, func(p *corev1.Pod) { p.Labels = map[string]string{"at": time.Now().String()} }, "game")
			w.pass(time.Second)
		}
		if _, _, events := w.count(); events != 1 || !w.hasEvent("ProbeIgnored", "absent") {
			t.Errorf("events %q", w.events)
		}
	})
}

func TestEventOfAProbeWithoutOutputDoesNotEndWithAColon(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.says(0, "")
		w.run()
		w.pass(5 * time.Second)
		if !w.hasEvent("KruiseProbeSucceeded", "Probe m#idle of container game") || w.hasEvent("of container game:") {
			t.Errorf("events %q", w.events)
		}
	})
}
