package node_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
)

// kubelet gets the change of an annotation when we do, or a little later: a container that is stopped before that starts
// with the old environment and has to be stopped again. The readiness gate is closed before, which must not count.
func TestStopWaitsUntilKubeletHasTheLastChange(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 990 * time.Millisecond, 1500 * time.Millisecond} {
		inWorld(t, []corev1.Container{container("game", "")}, func(w *world) {
			w.change(func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
			})
			w.pass(after)
			w.change(func(pod *corev1.Pod) { pod.Annotations["mode"] = "two" })
			changed := time.Now()
			w.pass(time.Minute)
			if len(w.begun) != 1 {
				t.Fatalf("%d stops, want 1", len(w.begun))
			}
			if waited := w.begun[0].Sub(changed); waited < 1500*time.Millisecond || waited > 2500*time.Millisecond {
				t.Errorf("gate closed %s before the annotation changed: stopped after %s, want 1.5 s", after, waited)
			}
		})
	}
}

// The pod is out of its Services from the moment that the gate closes.
func TestStopComesAtOnceWhenTheGateClosesAfterTheMetadataHasSettled(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", "")}, func(w *world) {
		w.change(func(pod *corev1.Pod) { pod.Annotations["mode"] = "two" })
		w.pass(1600 * time.Millisecond)
		w.change(func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
		})
		closed := time.Now()
		w.pass(time.Minute)
		if len(w.begun) != 1 || w.begun[0].Sub(closed) > 100*time.Millisecond {
			t.Errorf("stops at %v, want one at %v", w.begun, closed)
		}
	})
}

func TestReportIsWrittenOnceAndOnChange(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", ""), {Name: "log", Image: "log:v1"}}, func(w *world) {
		set := w.reported()
		game := set.Containers[0]
		if len(set.Containers) != 2 || game.Name != "game" || game.ContainerID != "containerd://game-0" || game.RestartCount != 0 ||
			fmt.Sprintf("%x", game.Hashes.PlainHash) != kubelet.ContainerHash(&w.pod.Spec.Containers[0]) ||
			game.Hashes.ExtractedEnvFromMetadataHash != reported.ExpectedEnvHash(&w.pod.Spec.Containers[0], w.pod) {
			t.Errorf("%+v", set)
		}
		for range 10 {
			w.change(func(pod *corev1.Pod) { pod.Status.PodIP += "1" })
			w.pass(2 * time.Second)
		}
		if len(w.writes) != 1 {
			t.Errorf("%d writes", len(w.writes))
		}
		w.change(func(*corev1.Pod) { w.start(0) })
		w.pass(5 * time.Second)
		if got := w.reported().Containers[0]; got.ContainerID != "containerd://game-1" || got.RestartCount != 1 || len(w.writes) != 2 {
			t.Errorf("%+v after %d writes", got, len(w.writes))
		}
	})
}

func TestChangedEnvironmentRestartsTheContainerOnceDuringAnUpdate(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", ""), {Name: "log", Image: "log:v1"}}, func(w *world) {
		w.change(func(pod *corev1.Pod) { pod.Annotations["mode"] = "two" })
		w.pass(time.Minute)
		if len(w.stopped) != 0 {
			t.Fatalf("an edited annotation stopped %q", w.stopped)
		}
		w.change(update)
		w.pass(time.Minute)
		if !slices.Equal(w.stopped, []string{"game-0"}) {
			t.Errorf("stopped %q", w.stopped)
		}
		if got := w.reported().Containers[0].Hashes.ExtractedEnvFromMetadataHash; got != reported.ExpectedEnvHash(&w.pod.Spec.Containers[0], w.pod) {
			t.Errorf("hash %d is not of the new environment", got)
		}
	})
}

// kubelet restarts a container whose image has changed, and the new one has the new environment too.
func TestImageAndEnvironmentTogetherAreOneStopByKubelet(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", "")}, func(w *world) {
		w.change(func(pod *corev1.Pod) { update(pod); pod.Spec.Containers[0].Image = "game:v2" })
		w.pass(30 * time.Second) // the image is pulled meanwhile
		w.change(func(*corev1.Pod) { w.start(0) })
		w.pass(time.Minute)
		if len(w.stopped) != 0 || w.reported().Containers[0].ContainerID != "containerd://game-1" {
			t.Errorf("stopped %q, reported %+v", w.stopped, w.reported())
		}
	})
}

func TestRestartsFollowLaunchPriority(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("low", "1"), container("high", "10"), container("none", "")}, func(w *world) {
		w.ready = false
		w.change(update)
		w.pass(time.Minute)
		slices.Sort(w.stopped) // the containers of one batch are stopped at the same time
		if !slices.Equal(w.stopped, []string{"high-0", "none-0"}) {
			t.Errorf("stopped %q before the first is ready", w.stopped)
		}
		w.change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[1].Ready = true; w.ready = true })
		w.pass(time.Minute)
		if !slices.Equal(w.stopped, []string{"high-0", "none-0", "low-0"}) {
			t.Errorf("stopped %q", w.stopped)
		}
	})
}

func TestRuntimeThatDoesNotReportTheEnvironmentStopsNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", "")}, func(w *world) {
		w.change(func(*corev1.Pod) { w.start(0); w.env["game-1"] = nil })
		w.pass(5 * time.Second)
		w.change(update)
		w.pass(time.Minute)
		if len(w.stopped) != 0 || w.reported().Containers[0].Hashes.ExtractedEnvFromMetadataHash != 0 {
			t.Errorf("stopped %q, reported %+v", w.stopped, w.reported())
		}
	})
}

// What has no launch priority waits for nothing.
func TestAContainerWithoutALaunchPriorityIsRestartedThoughAnotherIsNotReady(t *testing.T) {
	t.Parallel()
	high := container("high", "10")
	high.Env = high.Env[1:] // nothing of it changes
	inWorld(t, []corev1.Container{high, container("low", "1"), container("none", "")}, func(w *world) {
		w.change(func(pod *corev1.Pod) { update(pod); pod.Status.ContainerStatuses[0].Ready = false })
		w.pass(time.Minute)
		if !slices.Equal(w.stopped, []string{"none-0"}) {
			t.Errorf("stopped %q", w.stopped)
		}
	})
}
