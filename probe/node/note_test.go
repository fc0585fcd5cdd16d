package node_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
)

// One of the probes of a pod is removed: its result is removed too, although nothing else changes.
func TestResultOfAProbeThatIsTakenOutDisappears(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check"), execProbe("m#leader", "game", "check")))
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#idle Succeeded idle", "a m#leader Succeeded idle")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.pass(2 * time.Second)
		w.expect("a m#idle Succeeded idle")
	})
}

// The runtime has said that the container has ended. Until the pod's status says so too, nothing is run in it, whatever else happens;
// so it is with a native sidecar.
func TestEndOfAContainerIsKnownUntilThePodSaysSo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Pod){
		"container": func(*corev1.Pod) {},
		"native sidecar": func(p *corev1.Pod) {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.putPodWith("a", 1, change, "game")
				w.want(entry("a", execProbe("m#idle", "game", "check")))
				w.run()
				w.pass(5 * time.Second)
				w.containerStopped("a", 1)
				w.pass(time.Second)
				_, before, _ := w.count()
				for range 3 {
					w.putPodWith("a", 1, func(p *corev1.Pod) {
						change(p)
						p.Labels = map[string]string{"at": time.Now().String()}
					}, "game")
					w.pass(time.Second)
				}
				w.expect("a m#idle Failed Container(game) is Non-running")
				if _, execs, _ := w.count(); execs != before {
					t.Errorf("%d execs in a container that has ended", execs-before)
				}
				for _, p := range w.object.Status.PodProbeStatuses {
					if at := p.ProbeStates[0]; at.LastTransitionTime.IsZero() || at.LastProbeTime.IsZero() {
						t.Errorf("changed at %s, probed at %s", at.LastTransitionTime, at.LastProbeTime)
					}
				}
				w.putPodWith("a", 2, change, "game")
				w.pass(2 * time.Second)
				w.expect("a m#idle Succeeded idle")
			})
		})
	}
}

// The daemon that comes back has no result of its own yet when another probe's is written.
func TestResultsOfTheDaemonBeforeStayBesideNewOnes(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		slow := execProbe("m#slow", "game", "slow")
		slow.Probe.TimeoutSeconds = 60
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check"), slow))
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#idle Succeeded idle", "a m#slow Succeeded idle")
		w.end()
		w.answers(func(_, command string) (cri.ExecResult, error) {
			if command == "slow" {
				time.Sleep(20 * time.Second)
			}
			return cri.ExecResult{ExitCode: 1, Stdout: "busy"}, nil
		})
		w.run()
		w.pass(5 * time.Second)
		w.expect("a m#idle Failed busy", "a m#slow Succeeded idle")
	})
}

// A spec that is written while the status is: the answer to our write brings it, before or after the watch does.
func TestSpecThatChangesWhileTheStatusIsWritten(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.during = func() {
			w.during = nil
			w.object.Spec.PodProbes[0].Probes[0].Probe.Exec.Command = []string{"other"}
			w.object.Generation++
		}
		w.run()
		w.pass(5 * time.Second)
		if last := w.execs[len(w.execs)-1]; !strings.HasSuffix(last, " other") {
			t.Errorf("last command %q", last)
		}
	})
}

// The NodePodProbe is deleted while its status is written.
func TestObjectThatIsDeletedWhileItsStatusIsWritten(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.putPod("a", 1, "game")
		w.want(entry("a", execProbe("m#idle", "game", "check")))
		w.during = func() {
			w.during = nil
			w.objectSource.Delete(w.object.DeepCopy())
			time.Sleep(time.Second) // the watch is faster than the answer
		}
		w.gone = true
		w.run()
		w.pass(5 * time.Second)
		_, before, _ := w.count()
		w.pass(5 * time.Second)
		if _, execs, _ := w.count(); execs != before {
			t.Errorf("%d execs without a NodePodProbe", execs-before)
		}
	})
}

// Errors that are gone are not counted and reported any more, and are reported again when they come back.
func TestFaultsAreCountedAsLongAsTheyAreThere(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		bad := entry("a", execProbe("m#bad", "absent", "check"), execProbe("m#worse", "none", "check"))
		told := func() (n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, e := range w.events {
				n += strings.Count(e, "ProbeIgnored")
			}
			return n
		}
		w.putPod("a", 1, "game")
		w.run()
		for i, step := range []struct {
			entries []v1alpha1.PodProbe
			ignored float64
			told    int
		}{
			{[]v1alpha1.PodProbe{bad}, 2, 1},
			{[]v1alpha1.PodProbe{entry("a", bad.Probes[0])}, 1, 2},
			{nil, 0, 2},
			{[]v1alpha1.PodProbe{bad}, 2, 3},
		} {
			w.want(step.entries...)
			w.pass(5 * time.Second)
			if got := w.metric("refit_probes_ignored").GetGauge().GetValue(); got != step.ignored || told() != step.told {
				t.Errorf("step %d: %g ignored, %d Events; want %g and %d", i, got, told(), step.ignored, step.told)
			}
		}
	})
}
