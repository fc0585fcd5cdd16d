package set_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/cli"
	"github.com/refit-project/refit/cli/pull"
	"github.com/refit-project/refit/cli/set"
	"github.com/refit-project/refit/cli/set/change"
)

// puller answers with an error or none.
type puller struct {
	err    error
	images map[string]string
}

func (p *puller) Pull(_ context.Context, _ *corev1.Pod, images map[string]string, progress func(string)) error {
	p.images = images
	progress("pulling app:2, 1.0 MB of 2.0 MB")
	return p.err
}

func TestFailedPullLeavesThePodAsItIs(t *testing.T) {
	t.Parallel()
	api := &cluster{pod: web()}
	said, err := update(t, api, set.Config{Puller: &puller{err: fmt.Errorf("%w: not found", pull.ErrFailed)}}, must(change.Image([]string{"app=app:2"})))
	if cli.ExitCode(err) != cli.ExitFailed || api.writes > 0 || !strings.Contains(err.Error(), "the pod has not been changed") {
		t.Errorf("%v after %d writes", err, api.writes)
	}
	if !strings.Contains(said, "1.0 MB of 2.0 MB") || !strings.Contains(said, "node-1 pulls the new images") {
		t.Errorf("said:\n%s", said)
	}
}

func TestWhereNobodyPullsTheUpdateGoesOn(t *testing.T) {
	t.Parallel()
	api := &cluster{pod: web()}
	said, err := update(t, api, set.Config{Puller: &puller{err: fmt.Errorf("%w: no manager", pull.ErrNotBegun)}}, must(change.Image([]string{"app=app:2"})))
	if err == nil || api.writes != 1 || !strings.Contains(said, "pulled while its container is down") || !strings.Contains(said, "no manager") {
		t.Errorf("%v after %d writes; said:\n%s", err, api.writes, said)
	}
}

// kubelet would stop the container, and not start it again if the pull failed.
func TestContainerThatIsNotRestartedNeedsThePull(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pull error
		code int
	}{{nil, cli.ExitFailed}, {pull.ErrNotBegun, cli.ExitRefused}} {
		api := &cluster{pod: web()}
		api.pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := update(t, api, set.Config{Puller: &puller{err: test.pull}}, must(change.Image([]string{"app=app:2"})))
		if cli.ExitCode(err) != test.code || (api.writes > 0) != (test.pull == nil) {
			t.Errorf("pull %v: %v after %d writes", test.pull, err, api.writes)
		}
	}
}

func TestOnlyNewImagesArePulled(t *testing.T) {
	t.Parallel()
	for images, change := range map[string]change.Change{
		"map[app:app:2]": must(change.Image([]string{"app=app:2"})),
		"map[]":          must(change.Env(nil, []string{"LEVEL=debug"})),
	} {
		puller := &puller{err: errors.New("enough")}
		_, _ = update(t, &cluster{pod: web()}, set.Config{Puller: puller}, change)
		if got := fmt.Sprint(puller.images); got != images {
			t.Errorf("pulled %s, want %s", got, images)
		}
	}
}
