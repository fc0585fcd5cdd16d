package cli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/internal/console"
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
	said, err := update(t, api, inplacecli.Config{Puller: &puller{err: fmt.Errorf("%w: not found", image.ErrFailed)}}, must(change.Image([]string{"app=app:2"})))
	if console.ExitCode(err) != console.ExitFailed || api.writes > 0 || !strings.Contains(err.Error(), "the pod has not been changed") {
		t.Errorf("%v after %d writes", err, api.writes)
	}
	if !strings.Contains(said, "1.0 MB of 2.0 MB") || !strings.Contains(said, "node-1 pulls the new images") {
		t.Errorf("said:\n%s", said)
	}
}

func TestWhereNobodyPullsTheUpdateGoesOn(t *testing.T) {
	t.Parallel()
	api := &cluster{pod: web()}
	said, err := update(t, api, inplacecli.Config{Puller: &puller{err: fmt.Errorf("%w: no manager", image.ErrNotBegun)}}, must(change.Image([]string{"app=app:2"})))
	if err == nil || api.writes != 1 || !strings.Contains(said, "pulled while its container is down") || !strings.Contains(said, "no manager") {
		t.Errorf("%v after %d writes; said:\n%s", err, api.writes, said)
	}
}

// There is no node that could pull, and nothing that is down meanwhile.
func TestImageOfAPodThatHasNoNodeYetIsNotPulledBefore(t *testing.T) {
	t.Parallel()
	api := &cluster{pod: web()}
	api.pod.Spec.NodeName = ""
	asked := &puller{err: fmt.Errorf("%w: no NodeImage", image.ErrNotBegun)}
	said, _ := update(t, api, inplacecli.Config{Puller: asked, DryRun: true}, must(change.Image([]string{"app=app:2"})))
	if !strings.Contains(said, "pod demo/web on no node yet, dry run") || strings.Contains(said, "pull") {
		t.Errorf("said:\n%s", said)
	}
	said, _ = update(t, api, inplacecli.Config{Puller: asked}, must(change.Image([]string{"app=app:2"})))
	if asked.images != nil || strings.Contains(said, "pull") || api.writes != 1 {
		t.Errorf("%d writes, asked to pull %v; said:\n%s", api.writes, asked.images, said)
	}
}

// kubelet would stop the container, and not start it again if the pull failed.
func TestContainerThatIsNotRestartedNeedsThePull(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pull error
		code int
	}{{nil, console.ExitFailed}, {image.ErrNotBegun, console.ExitRefused}} {
		api := &cluster{pod: web()}
		api.pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := update(t, api, inplacecli.Config{Puller: &puller{err: test.pull}}, must(change.Image([]string{"app=app:2"})))
		if console.ExitCode(err) != test.code || (api.writes > 0) != (test.pull == nil) {
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
		_, _ = update(t, &cluster{pod: web()}, inplacecli.Config{Puller: puller}, change)
		if got := fmt.Sprint(puller.images); got != images {
			t.Errorf("pulled %s, want %s", got, images)
		}
	}
}

// Whoever has recorded them has had them pulled, or does without.
func TestImagesThatAnotherCommandHasRecordedAreNotPulled(t *testing.T) {
	t.Parallel()
	for words, err := range map[string]error{"node node-1 has the new images": nil, "the image is pulled while its container is down": image.ErrNotBegun} {
		api, puller := &cluster{pod: web()}, &puller{err: err}
		api.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"nextContainerImages":{"log":"log:2"},"refit":{}}`
		said, _ := update(t, api, inplacecli.Config{Puller: puller}, must(change.Image([]string{"app=app:2"})))
		if got := fmt.Sprint(puller.images); got != "map[app:app:2]" || !strings.Contains(said, words) {
			t.Errorf("pulled %s; said:\n%s", got, said)
		}
	}
}
