package node_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
)

func TestImagesArePulledAndReported(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.onNode["docker.io/library/have:v1"] = "sha256:have"
		w.want(1, "a:v1", "b:v1", "c:v1", "have:v1")
		w.run()
		w.expect(2*time.Second, "a:v1 Pulling 0", "b:v1 Pulling 0", "c:v1 Waiting 0", "have:v1 Waiting 0")
		w.expect(10*time.Second, "a:v1 Succeeded 100", "b:v1 Succeeded 100", "c:v1 Succeeded 100", "have:v1 Succeeded 100")
		if len(w.pulls) != 3 || w.pulls[0].Annotations["a"] != "b" || w.pulls[0].Annotations["apps.kruise.io/pulling-image-by"] != "refit-daemon" {
			t.Errorf("%+v", w.pulls)
		}
		if status := w.object.Status; status.Desired != 4 || status.Succeeded != 4 || status.Pulling != 0 || status.ImageStatuses["a"].Tags[0].ImageID != "a@sha256:id" {
			t.Errorf("%+v", status)
		}
		if !w.saw("Normal NodeImage /node-1 PullImageSucceed", "a:v1", "3s") {
			t.Errorf("events %q", w.events)
		}
		if !w.saw("Normal NodeImage /node-1 PullImageSucceed", "The node has image have:v1 already") || w.saw("Pulled image have:v1") {
			t.Errorf("events %q", w.events)
		}
		writes := len(w.writes)
		if w.after(24 * time.Hour); len(w.writes) != writes || writes > 6 {
			t.Errorf("%d writes, %d afterwards", writes, len(w.writes)-writes)
		}
	})
}

func TestProgressIsWrittenInFewSteps(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pull = func(context.Context, cri.PullRequest) (string, error) {
			time.Sleep(500 * time.Second)
			return "sha256:id", nil
		}
		begun := time.Now()
		w.progress = func() (cri.Progress, error) {
			return cri.Progress{Pulled: int64(time.Since(begun) / time.Second), Total: 500}, nil
		}
		w.want(1, "a:v1")
		w.run()
		if got := w.after(255 * time.Second); len(got) != 1 || got[0] < "a:v1 Pulling 40" || got[0] > "a:v1 Pulling 50" {
			t.Errorf("%q", got)
		}
		w.expect(250*time.Second, "a:v1 Succeeded 100")
		if len(w.writes) > 7 {
			t.Errorf("%d writes for one image", len(w.writes))
		}
	})
}

func TestEndOfAPullIsWrittenSoonAfterAnotherWrite(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pull = func(context.Context, cri.PullRequest) (string, error) {
			time.Sleep(1600 * time.Millisecond)
			return "sha256:id", nil
		}
		w.want(1, "a:v1")
		w.run()
		w.expect(1500*time.Millisecond, "a:v1 Pulling 0")
		w.expect(250*time.Millisecond, "a:v1 Succeeded 100")
	})
}

// A job for an image that the nodes have costs each of them one write.
func TestQuickPullIsWrittenOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pull = func(context.Context, cri.PullRequest) (string, error) {
			time.Sleep(600 * time.Millisecond)
			return "sha256:id", nil
		}
		w.want(1, "a:v1")
		w.run()
		w.expect(750*time.Millisecond, "a:v1 Succeeded 100")
		if len(w.writes) != 1 {
			t.Errorf("%d writes", len(w.writes))
		}
	})
}

func TestFailedPull(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pull = func(_ context.Context, r cri.PullRequest) (string, error) {
			return "", fmt.Errorf("pull %s: %w: 404", r.Image, cri.ErrNotFound)
		}
		w.want(1, "a:v1")
		w.run()
		w.expect(20*time.Second, "a:v1 Failed 0")
		if want := "attempt 4 of 4 failed: pull docker.io/library/a:v1: not found: 404"; w.message("a") != want {
			t.Errorf("message %q, want %q", w.message("a"), want)
		}
		if len(w.pulls) != 4 || len(w.writes) > 12 {
			t.Errorf("%d pulls, %d writes", len(w.pulls), len(w.writes))
		}
		if !w.saw("Warning NodeImage", "PullImageFailed", "404") || !w.saw("Warning ImagePullJob shop/job PullImageFailed", node) {
			t.Errorf("events %q", w.events)
		}
		w.pull = func(context.Context, cri.PullRequest) (string, error) { return "sha256:id", nil }
		w.want(2, "a:v1")
		w.expect(5*time.Second, "a:v1 Succeeded 100")
	})
}

// A daemon that comes back neither pulls nor writes again what has ended.
func TestRestartOfTheDaemon(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.want(1, "a:v1")
		w.run()
		w.expect(5*time.Second, "a:v1 Succeeded 100")
		pulls, writes := len(w.pulls), len(w.writes)
		w.run()
		w.after(time.Minute)
		if len(w.pulls) != pulls || len(w.writes) != writes {
			t.Errorf("%d pulls and %d writes by a restart", len(w.pulls)-pulls, len(w.writes)-writes)
		}
		w.want(1, "a:v1", "b:v1")
		w.after(1500 * time.Millisecond)
		w.run() // killed in the middle
		w.expect(6*time.Second, "a:v1 Succeeded 100", "b:v1 Succeeded 100")
		w.want(1, "b:v1")
		w.expect(3*time.Second, "b:v1 Succeeded 100")
	})
}

func TestRecreatedObjectIsReportedAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.want(1, "a:v1")
		w.run()
		w.expect(5*time.Second, "a:v1 Succeeded 100")
		w.again()
		w.expect(10*time.Second, "a:v1 Succeeded 100")
	})
}

func TestAPIServerAwayDelaysTheStatusOnly(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.writeErr = errors.New("connection refused")
		w.want(1, "a:v1")
		w.run()
		w.expect(10 * time.Second)
		w.mu.Lock()
		w.writeErr = nil
		w.mu.Unlock()
		w.expect(2*time.Minute, "a:v1 Succeeded 100")
		if len(w.pulls) != 1 {
			t.Errorf("%d pulls", len(w.pulls))
		}
	})
}
