package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
)

// The runtime is asked for the whole name, with what the job gives its sandbox, which cannot say that others have asked.
func TestWhatTheRuntimeIsAskedFor(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.want(1, "a:v1", "b:v1")
		spec := w.object.Spec.Images["a"]
		spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"l": "m"}, Annotations: map[string]string{"a": "b", v1beta1.AnnotationPullingImageBy: "somebody"}}
		w.object.Spec.Images["a"] = spec
		spec = w.object.Spec.Images["b"]
		spec.SandboxConfig = nil
		w.object.Spec.Images["b"] = spec
		w.run()
		w.after(10 * time.Second)
		slices.SortFunc(w.pulls, func(a, b cri.PullRequest) int { return strings.Compare(a.Image, b.Image) })
		want := []cri.PullRequest{
			{Image: "docker.io/library/a:v1", Labels: map[string]string{"l": "m"}, Annotations: map[string]string{"a": "b", v1beta1.AnnotationPullingImageBy: "refit-daemon"}},
			{Image: "docker.io/library/b:v1", Annotations: map[string]string{v1beta1.AnnotationPullingImageBy: "refit-daemon"}},
		}
		if diff := cmp.Diff(want, w.pulls); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// The bytes of a pull by digest are found by the digest; the bytes of a pull by tag by what arrives for the repository.
func TestWhoseProgressIsAskedFor(t *testing.T) {
	t.Parallel()
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	inWorld(t, func(w *world) {
		w.want(1, "a:v1", "reg.test/b:"+digest)
		w.run()
		w.after(10 * time.Second)
		slices.Sort(w.metered)
		if diff := cmp.Diff([]string{"docker.io library/a", "reg.test b " + digest}, w.metered); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A runtime that once does not answer is asked again, and what it does not know yet is no progress.
func TestProgressIsAskedForAgainAfterAnError(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pull = func(context.Context, cri.PullRequest) (string, error) {
			time.Sleep(10 * time.Second)
			return "sha256:id", nil
		}
		looks := 0
		w.progress = func() (cri.Progress, error) {
			switch looks++; looks {
			case 1:
				return cri.Progress{}, errors.New("unavailable")
			case 2:
				return cri.Progress{Pulled: 5}, nil
			}
			return cri.Progress{Pulled: 1, Total: 2}, nil
		}
		w.want(1, "a:v1")
		w.run()
		w.expect(2500*time.Millisecond, "a:v1 Pulling 0")
		w.expect(3*time.Second, "a:v1 Pulling 50")
		w.expect(10*time.Second, "a:v1 Succeeded 100")
		if asked := looks; asked > 10 {
			t.Errorf("asked %d times in ten seconds", asked)
		}
	})
}

// A runtime that knows no progress is not asked again.
func TestProgressThatIsNotSupportedIsAskedForOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		looks := 0
		w.progress = func() (cri.Progress, error) { looks++; return cri.Progress{}, cri.ErrUnsupported }
		w.want(1, "a:v1")
		w.run()
		if w.after(10 * time.Second); looks != 1 {
			t.Errorf("asked %d times", looks)
		}
	})
}

// A NodeImage that is gone, as its node may be soon, asks for nothing.
func TestPullsEndWithTheNodeImage(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		cancelled := 0
		w.pull = func(ctx context.Context, _ cri.PullRequest) (string, error) {
			<-ctx.Done()
			cancelled++
			return "", ctx.Err()
		}
		w.want(1, "a:v1")
		w.run()
		w.expect(2*time.Second, "a:v1 Pulling 0")
		w.source.Delete(w.object)
		time.Sleep(time.Second)
		if synctest.Wait(); cancelled != 1 || w.saw("PullImageFailed") {
			t.Errorf("%d pulls cancelled, events %q", cancelled, w.events)
		}
	})
	inWorld(t, func(w *world) {
		w.object.DeletionTimestamp = new(metav1.Now())
		w.want(1, "a:v1")
		w.run()
		if w.after(10 * time.Second); len(w.writes) != 0 {
			t.Errorf("%d writes of the status of a NodeImage that is being deleted", len(w.writes))
		}
	})
}

func TestPullsAreCounted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.onNode["docker.io/library/have:v1"] = "sha256:have"
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			if strings.Contains(r.Image, "bad") {
				return "", fmt.Errorf("pull %s: %w: 404", r.Image, cri.ErrNotFound)
			}
			time.Sleep(3 * time.Second)
			return "sha256:id", nil
		}
		w.writeErr = errors.New("connection refused")
		w.want(1, "a:v1", "bad:v1", "have:v1")
		w.run()
		w.after(30 * time.Second)
		w.mu.Lock()
		w.writeErr = nil
		w.mu.Unlock()
		w.after(2 * time.Minute)
		families, err := w.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				name := family.GetName()
				for _, label := range m.GetLabel() {
					name += " " + label.GetValue()
				}
				if h := m.GetHistogram(); h != nil {
					values[name+" sum"], values[name+" count"] = h.GetSampleSum(), float64(h.GetSampleCount())
				} else {
					values[name] = m.GetCounter().GetValue()
				}
			}
		}
		if values["refit_image_pulls_total Succeeded"] != 2 || values["refit_image_pulls_total Failed"] != 1 || values["refit_image_pull_duration_seconds count"] != 2 || values["refit_image_pull_duration_seconds sum"] != 3 ||
			values["refit_image_status_writes_total ok"] != float64(len(w.writes)) || values["refit_image_status_writes_total error"] < 1 {
			t.Errorf("%v, after %d writes", values, len(w.writes))
		}
		if !w.saw("Warning ImagePullJob shop/job PullImageFailed Node node-1: Cannot pull image bad:v1: attempt 4 of 4 failed") || !w.saw("Normal NodeImage /node-1 PullImageSucceed Pulled image a:v1 in 3s") {
			t.Errorf("events %q", w.events)
		}
	})
}
