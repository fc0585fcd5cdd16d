package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
)

// slowPull takes two seconds.
type slowPull struct{}

func (slowPull) Pull(ctx context.Context, _ *corev1.Pod, _ map[string]string, _ func(string)) error {
	select {
	case <-time.After(2 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func drainFor(seconds int32) inplacecli.Config {
	return inplacecli.Config{Options: plan.Options{DrainSeconds: seconds}}
}

// The first pulls while the second records its change and drains.
func TestChangeThatAnotherCommandHasRecordedDuringThePullIsNotLost(t *testing.T) {
	t.Parallel()
	for _, gate := range []corev1.PodConditionType{v1beta1.ReadinessGateInPlaceUpdateReady, v1beta1.ReadinessGateKruisePodReady} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(gate)
			first := s.start(t.Context(), inplacecli.Config{Puller: slowPull{}}, images(t, "log=log:2"))
			time.Sleep(time.Second)
			second := s.start(t.Context(), drainFor(20), images(t, "app=app:2"))
			for name, command := range map[string]ended{"first": <-first, "second": <-second} {
				if command.err != nil {
					t.Errorf("%s: the %s command: %v; said:\n%s", gate, name, command.err, command.said)
				}
			}
			if s.image("app") != "app:2" || s.image("log") != "log:2" {
				t.Errorf("%s: images %s and %s, want both changed", gate, s.image("app"), s.image("log"))
			}
			if took := s.changed["app"].Sub(s.drained); took < 20*time.Second {
				t.Errorf("%s: app was stopped %s after the drain began, want 20 s", gate, took)
			}
			if !s.open(gate) || !s.open(corev1.PodReady) {
				t.Errorf("%s: the pod is not back in its Services", gate)
			}
		})
	}
}

func TestChangeThatAnotherCommandHasReplacedIsNotReportedAsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		first := s.start(t.Context(), drainFor(5), images(t, "app=app:2"))
		time.Sleep(2 * time.Second)
		second := s.start(t.Context(), inplacecli.Config{}, images(t, "app=app:3"))
		command := <-first
		if console.ExitCode(command.err) != console.ExitFailed || !strings.Contains(command.err.Error(), "superseded by") || !strings.Contains(command.err.Error(), "app:3") {
			t.Errorf("%v; said:\n%s", command.err, command.said)
		}
		if command = <-second; command.err != nil || s.image("app") != "app:3" {
			t.Errorf("the second: %v, image %s", command.err, s.image("app"))
		}
	})
}

// kubectl set image knows of no record.
func TestImageThatWasChangedByOtherMeansIsNotReportedAsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		s.broken["app:2"] = "ImagePullBackOff"
		first := s.start(t.Context(), inplacecli.Config{}, images(t, "app=app:2"))
		time.Sleep(2 * time.Second)
		s.edit(func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:3" })
		if command := <-first; console.ExitCode(command.err) != console.ExitFailed || !strings.Contains(command.err.Error(), "container app has image app:3, not app:2") {
			t.Errorf("%v; said:\n%s", command.err, command.said)
		}
	})
}

// The second command stops nothing and asks for no drain.
func TestDrainThatWasPromisedIsNotCutShortByAnotherCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateInPlaceUpdateReady)
		first := s.start(t.Context(), drainFor(30), images(t, "app=app:2"))
		time.Sleep(6 * time.Second)
		second := s.start(t.Context(), inplacecli.Config{}, must(change.Resources(change.Sizes{Containers: []string{"log"}, Requests: "cpu=200m"})))
		a, b := <-first, <-second
		if a.err != nil || b.err != nil {
			t.Errorf("%v, %v", a.err, b.err)
		}
		if took := s.changed["app"].Sub(s.drained); took < 30*time.Second {
			t.Errorf("stopped %s after the drain began, want 30 s", took)
		}
	})
}

func TestInterruptedDrainIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, gate := range []corev1.PodConditionType{v1beta1.ReadinessGateInPlaceUpdateReady, v1beta1.ReadinessGateKruisePodReady} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(gate)
			ctx, interrupt := context.WithCancelCause(t.Context())
			first := s.start(ctx, drainFor(30), images(t, "app=app:2"))
			time.Sleep(5 * time.Second)
			if s.open(gate) {
				t.Fatal("the pod does not drain")
			}
			interrupt(errors.New("interrupt signal received"))
			command := <-first
			if console.ExitCode(command.err) != console.ExitInterrupted || !strings.Contains(command.err.Error(), "taken back") {
				t.Errorf("%s: %v", gate, command.err)
			}
			if !s.open(gate) || !s.open(corev1.PodReady) || s.image("app") != "app:1" || strings.Contains(s.record(), "app:2") {
				t.Errorf("%s: ready %t, image %s, record %s", gate, s.open(corev1.PodReady), s.image("app"), s.record())
			}
		})
	}
}

// What another command has recorded stays, and so does its drain.
func TestInterruptedCommandTakesBackOnlyItsOwnChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		ctx, interrupt := context.WithCancel(t.Context())
		first := s.start(ctx, drainFor(30), images(t, "app=app:2"))
		time.Sleep(time.Second)
		second := s.start(t.Context(), drainFor(10), images(t, "log=log:2"))
		time.Sleep(time.Second)
		interrupt()
		<-first
		if s.open(corev1.PodReady) {
			t.Error("the pod is back in its Services before the other command has stopped its container")
		}
		if command := <-second; command.err != nil || s.image("log") != "log:2" || s.image("app") != "app:1" {
			t.Errorf("%v, images %s and %s", command.err, s.image("app"), s.image("log"))
		}
	})
}

// A command that was killed has left the pod out of its Services; the next one brings it back.
func TestNextCommandTakesBackADrainThatWasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		s.edit(func(pod *corev1.Pod) {
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
			pod.Status.Conditions[0].Message = v1beta1.WriteReadinessHolds([]v1beta1.ReadinessHold{v1beta1.HoldOfInPlaceUpdate})
		})
		said, err := s.set(t.Context(), inplacecli.Config{}, images(t, "app=app:1")) // nothing is different
		if err != nil || !s.open(corev1.PodReady) {
			t.Errorf("%v; said:\n%s", err, said)
		}
	})
}

// A request of refit-manager holds the pod as well.
func TestUpdateLeavesThePodOutOfItsServicesThatAnotherHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		other := v1beta1.ReadinessHold{UserAgent: "ContainerRecreateRequest", Key: "demo/r"}
		s.edit(func(pod *corev1.Pod) {
			pod.Status.Conditions[0].Status, pod.Status.Conditions[0].Message = corev1.ConditionFalse, v1beta1.WriteReadinessHolds([]v1beta1.ReadinessHold{other})
		})
		if said, err := s.set(t.Context(), inplacecli.Config{}, images(t, "app=app:2")); err != nil {
			t.Fatalf("%v; said:\n%s", err, said)
		}
		holds, err := v1beta1.ReadReadinessHolds(&s.pod.Status.Conditions[0])
		if err != nil || len(holds) != 1 || holds[0] != other || s.open(v1beta1.ReadinessGateKruisePodReady) {
			t.Errorf("%+v, %v", s.pod.Status.Conditions[0], err)
		}
	})
}

// They were killed in their drain. Each pod is under way, as its record says.
func TestUpdatesThatKilledCommandsHaveLeftGoOnOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		killed := newWorkload(t, 1)
		killed.start(t.Context(), 0, drainFor(20), images(t, "app=app:2"))
		time.Sleep(5 * time.Second)
		w := newWorkload(t, 3)
		for _, s := range w.servers[:2] {
			s.edit(func(pod *corev1.Pod) {
				pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = killed.servers[0].record()
			})
		}
		time.Sleep(time.Minute)
		began := time.Now()
		first, second := w.start(t.Context(), 0, drainFor(20), images(t, "app=app:2")), w.start(t.Context(), 1, drainFor(20), images(t, "app=app:2"))
		for i, done := range []chan ended{first, second} {
			if command := <-done; command.err != nil || w.servers[i].image("app") != "app:2" || time.Since(began) > 2*time.Minute {
				t.Errorf("pod %d: %v after %s; said:\n%s", i, command.err, time.Since(began), command.said)
			}
		}
		if apart := w.servers[0].drained.Sub(w.servers[1].drained).Abs(); apart < 20*time.Second {
			t.Errorf("both were taken out within %s", apart)
		}
	})
}

// Nothing is left to be followed, and nothing to be changed.
func TestTheSameChangeAgainChangesNothingWhenItIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		if _, err := s.set(t.Context(), inplacecli.Config{}, images(t, "app=app:2")); err != nil {
			t.Fatal(err)
		}
		writes := len(s.writes)
		said, err := s.set(t.Context(), inplacecli.Config{}, images(t, "app=app:2"))
		if err != nil || !strings.Contains(said, "pod/web unchanged") || len(s.writes) != writes {
			t.Errorf("%v after %v; said:\n%s", err, s.writes[writes:], said)
		}
	})
}

// It says what would be done, and waits for nothing.
func TestDryRunOfAChangeThatIsUnderWayEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.broken["app:2"] = "ImagePullBackOff"
		first := s.start(t.Context(), inplacecli.Config{Timeout: time.Minute}, images(t, "app=app:2"))
		time.Sleep(5 * time.Second)
		began := time.Now()
		if said, err := s.set(t.Context(), inplacecli.Config{DryRun: true}, images(t, "app=app:2")); err != nil || !strings.Contains(said, "would wait") || time.Since(began) > 0 {
			t.Errorf("%v after %s; said:\n%s", err, time.Since(began), said)
		}
		<-first
	})
}

// What has been written to the pod cannot be taken back: kubelet has stopped the container.
func TestInterruptedUpdateSaysThatItGoesOn(t *testing.T) {
	t.Parallel()
	for gate, out := range map[corev1.PodConditionType]bool{"": false, v1beta1.ReadinessGateKruisePodReady: true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			if gate != "" {
				s = newServer(gate)
			}
			s.broken["app:2"] = "ImagePullBackOff"
			_, err := s.set(t.Context(), inplacecli.Config{Timeout: 15 * time.Second}, images(t, "app=app:2"))
			if console.ExitCode(err) != console.ExitTimeout || !strings.Contains(err.Error(), "the same command goes on with it") ||
				strings.Contains(err.Error(), "the pod is out of its Services") != out || s.image("app") != "app:2" {
				t.Errorf("gate %q: %v", gate, err)
			}
		})
	}
}

// A pod that is not ready is updated to mend it; what was taken back must not come with the next change.
func TestInterruptedDrainOfAPodThatIsNotReadyIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		s.broken["app:1"] = "CrashLoopBackOff"
		s.kubelet()
		ctx, interrupt := context.WithCancelCause(t.Context())
		first := s.start(ctx, drainFor(30), images(t, "app=app:2"))
		time.Sleep(5 * time.Second)
		interrupt(errors.New("interrupt signal received"))
		if command := <-first; !strings.Contains(command.err.Error(), "taken back") || strings.Contains(s.record(), "app:2") || !s.open(v1beta1.ReadinessGateKruisePodReady) {
			t.Errorf("%v, record %s", command.err, s.record())
		}
		if said, err := s.set(t.Context(), inplacecli.Config{}, images(t, "log=log:2")); err != nil || s.image("app") != "app:1" {
			t.Errorf("%v, image %s; said:\n%s", err, s.image("app"), said)
		}
	})
}
