package cli_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
)

var pods = schema.GroupResource{Resource: "pods"}

// Each write may conflict with a write by somebody else. The update is completed all the same.
func TestEveryWriteIsDecidedAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(v1beta1.ReadinessGateKruisePodReady)
		n := 0
		s.refuse = func(string) error {
			if n++; n%2 == 1 {
				return apierrors.NewConflict(pods, "web", errors.New("changed"))
			}
			return nil
		}
		said, err := s.set(t.Context(), inplacecli.Config{}, images(t, "app=app:2"))
		if err != nil || s.image("app") != "app:2" || !s.open(v1beta1.ReadinessGateKruisePodReady) || n < 6 {
			t.Errorf("%v after %v; said:\n%s", err, s.writes, said)
		}
	})
}

// Whoever asks for the same a moment earlier has done what the command is for.
func TestTheSameChangeOfAnotherInTheSameMomentIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.refuse = func(string) error {
			s.pod.Spec.Containers[0].Image = "app:2"
			s.store()
			return nil
		}
		said, err := s.set(t.Context(), inplacecli.Config{}, images(t, "app=app:2"))
		if err != nil || s.image("app") != "app:2" || len(s.writes) != 1 {
			t.Errorf("%v after %v; said:\n%s", err, s.writes, said)
		}
	})
}

// A command that is interrupted during a drain, and cannot take its change back, says what stays.
func TestWhatCannotBeTakenBackIsSaid(t *testing.T) {
	t.Parallel()
	denied := apierrors.NewForbidden(pods, "web", errors.New("role removed"))
	for says, change := range map[string]func(*server){
		"the pod could not be read again: ": func(s *server) { s.away = denied },
		"it stays recorded on the pod, the pod is out of its Services, since it could not be taken back: ": func(s *server) {
			s.refuse = func(string) error { return denied }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(v1beta1.ReadinessGateKruisePodReady)
			ctx, interrupt := context.WithCancelCause(t.Context())
			first := s.start(ctx, drainFor(30), images(t, "app=app:2"))
			time.Sleep(5 * time.Second)
			s.mutex.Lock()
			change(s)
			s.mutex.Unlock()
			interrupt(errors.New("interrupt signal received"))
			if command := <-first; command.err == nil || !strings.HasPrefix(command.err.Error(), "interrupted; last: ") ||
				!strings.Contains(command.err.Error(), says) || !strings.Contains(command.err.Error(), "role removed") {
				t.Errorf("%v, want %s", command.err, says)
			}
		})
	}
}

// That the new image, by somebody else, ends for good is half of what is wrong: the one that was asked for is not there.
func TestImageOfAnotherThatEndsForGoodIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		s.broken["app:2"], s.broken["app:3"] = "ImagePullBackOff", "ended"
		first := s.start(t.Context(), inplacecli.Config{Options: plan.Options{ImagesPresent: true}}, images(t, "app=app:2"))
		time.Sleep(2 * time.Second)
		s.edit(func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:3" })
		command := <-first
		if console.ExitCode(command.err) != console.ExitFailed || !strings.Contains(command.err.Error(), "container app has image app:3, not app:2") {
			t.Errorf("%v; said:\n%s", command.err, command.said)
		}
	})
}

// unasked is an API server that does not say what the user may do.
type unasked struct{ *server }

func (unasked) May(context.Context, string, inplacecli.Right) (bool, error) {
	return false, errors.New("selfsubjectaccessreviews is forbidden")
}

func TestWhoMayNotAskForRightsMayUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var out bytes.Buffer
		config := inplacecli.Config{API: unasked{s}, Output: console.NewOutput(&out, false)}
		err := inplacecli.Update(t.Context(), config, "demo", inplacecli.Target{Kind: inplacecli.KindPod, Name: "web"}, images(t, "app=app:2"))
		if err != nil || s.image("app") != "app:2" {
			t.Errorf("%v; said:\n%s", err, out.String())
		}
	})
}
