package cli_test

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/internal/console"
)

// following is a pod whose image has been written, and what kubelet reports later.
func following() (before, after *corev1.Pod) {
	before = web()
	before.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"","updateTimestamp":null,"lastContainerStatuses":{"app":{"imageID":"x"}},"updateImages":true}`
	before.Spec.Containers[0].Image = "app:2"
	after = before.DeepCopy()
	after.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: "app:2", ImageID: "y", ContainerID: "containerd://2", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return before, after
}

func refused() error {
	return &url.Error{Op: "Get", URL: "https://api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
}

// The pod may be out of its Services then, and nobody else goes on with its update.
func TestUpdateGoesOnWhenTheAPIServerIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before, after := following()
		api := &cluster{read: func(n int) (*corev1.Pod, error) {
			switch {
			case n == 1:
				return before, nil
			case n < 60:
				return nil, refused()
			default:
				return after, nil
			}
		}}
		said, err := update(t, api, inplacecli.Config{}, must(change.Image([]string{"app=app:2"})))
		if err != nil || strings.Count(said, "until the API server can be reached") != 1 {
			t.Errorf("%v; said:\n%s", err, said)
		}
	})
}

// The API server may go away while kubelet waits for the next attempt to pull an image.
func TestTimeoutNamesWhatBlockedTheUpdateBeforeTheAPIServerWasAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before, blocked := following()
		blocked.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
		api := &cluster{read: func(n int) (*corev1.Pod, error) {
			switch {
			case n == 1:
				return before, nil
			case n < 5:
				return blocked, nil
			default:
				return nil, refused()
			}
		}}
		said, err := update(t, api, inplacecli.Config{Timeout: 2 * time.Minute}, must(change.Image([]string{"app=app:2"})))
		if console.ExitCode(err) != console.ExitTimeout || !strings.Contains(err.Error(), "; before that: ") || !strings.Contains(err.Error(), "ErrImagePull") {
			t.Errorf("%v; said:\n%s", err, said)
		}
	})
}

func TestWriteIsDecidedAgainWhenTheAPIServerIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, after := following()
		api := &cluster{pod: web()}
		api.patch = func(string) (*corev1.Pod, error) {
			if api.writes == 1 {
				return nil, refused()
			}
			return after, nil
		}
		said, err := update(t, api, inplacecli.Config{}, must(change.Image([]string{"app=app:2"})))
		if err != nil || api.writes != 2 {
			t.Errorf("%v after %d writes; said:\n%s", err, api.writes, said)
		}
	})
}

func TestPodThatWasReplacedWhileItWasNotWatchedIsNotTakenForTheUpdatedOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before, after := following()
		after.UID = "another"
		delete(after.Annotations, v1beta1.AnnotationInPlaceUpdateState)
		api := &cluster{read: func(n int) (*corev1.Pod, error) {
			if n == 1 {
				return before, nil
			}
			return after, nil
		}}
		said, err := update(t, api, inplacecli.Config{}, must(change.Image([]string{"app=app:2"})))
		if !errors.Is(err, console.ErrFailed) || !strings.Contains(err.Error(), "replaced by another of its name") {
			t.Errorf("%v; said:\n%s", err, said)
		}
	})
}
