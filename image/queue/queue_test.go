package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/wait"
)

func TestPullsInOrderOfTheirAgeAndNoMoreThanAllowed(t *testing.T) {
	t.Parallel()
	inQueue(t, 4, func(p *puller, q *queue.Queue) {
		var wants []image.Want
		for i := range 10 {
			wants = append(wants, want(fmt.Sprintf("app%d", i), func(w *image.Want) { w.CreatedAt = time.Now().Add(-time.Duration(i) * time.Minute) }))
		}
		q.Set(wants, nil)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if got := slices.Sorted(slices.Values(p.pulls())); !slices.Equal(got, []string{"app7:latest", "app8:latest", "app9:latest"}) {
			t.Errorf("first are %q", got)
		}
		expect(t, q, "app0", v1beta1.ImagePhaseWaiting)
		expect(t, q, "app9", v1beta1.ImagePhasePulling)
		time.Sleep(4 * time.Second)
		for i := range 10 {
			if s := expect(t, q, fmt.Sprintf("app%d", i), v1beta1.ImagePhaseSucceeded); s.ImageID != "sha256:1" || s.Percent() != 100 {
				t.Errorf("%+v", s)
			}
		}
		if p.most != 3 || len(p.pulls()) != 10 {
			t.Errorf("%d at once, %d pulls", p.most, len(p.pulls()))
		}
	})
}

func TestOneImageByTwoNamesIsPulledOnceAtATime(t *testing.T) {
	t.Parallel()
	inQueue(t, 5, func(p *puller, q *queue.Queue) {
		other := want("nginx")
		other.Repository = "docker.io/library/nginx" // as another program writes it
		q.Set([]image.Want{want("nginx"), other}, nil)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		p.mu.Lock()
		p.present["nginx:latest"], p.present["docker.io/library/nginx:latest"] = "sha256:1", "sha256:1"
		p.mu.Unlock()
		time.Sleep(time.Second)
		expect(t, q, "nginx", v1beta1.ImagePhaseSucceeded)
		if s := q.States()[other.Target]; s.Phase != v1beta1.ImagePhaseSucceeded || len(p.pulls()) != 1 {
			t.Errorf("%+v, pulls %q", s, p.pulls())
		}
	})
}

func TestImagePullPolicy(t *testing.T) {
	t.Parallel()
	inQueue(t, 5, func(p *puller, q *queue.Queue) {
		p.present["a:latest"], p.present["b:latest"] = "sha256:a", "sha256:b"
		q.Set([]image.Want{want("a"), want("b", func(w *image.Want) { w.Always = true })}, nil)
		time.Sleep(2 * time.Second)
		expect(t, q, "a", v1beta1.ImagePhaseSucceeded)
		expect(t, q, "b", v1beta1.ImagePhaseSucceeded)
		if !slices.Equal(p.pulls(), []string{"b:latest"}) {
			t.Errorf("pulls %q", p.pulls())
		}
	})
}

// It would be reported as pulled although nobody knows whether it is there.
func TestAnImageOfWhichTheRuntimeSaysNothingIsNotPulled(t *testing.T) {
	t.Parallel()
	inQueue(t, 5, func(p *puller, q *queue.Queue) {
		p.unseen = errors.New("the runtime is away")
		q.Set([]image.Want{want("a", func(w *image.Want) { w.Retries = 0 })}, nil)
		time.Sleep(2 * time.Second)
		expect(t, q, "a", v1beta1.ImagePhaseFailed, "the runtime is away")
		if len(p.order) != 0 {
			t.Errorf("pulls %q", p.order)
		}
	})
}

func TestWhatIsNoLongerWantedIsCancelled(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		cancelled := 0
		p.pull = func(ctx context.Context, w image.Want, _ int, _ func(int64, int64)) (string, error) {
			err := wait.For(ctx, time.Minute)
			if err != nil {
				cancelled++
			}
			return "sha256:" + fmt.Sprint(w.Version), err
		}
		q.Set([]image.Want{want("a"), want("b")}, nil)
		time.Sleep(time.Second)
		q.Set([]image.Want{want("b")}, nil)
		time.Sleep(time.Second)
		if expect(t, q, "b", v1beta1.ImagePhasePulling); cancelled != 1 || len(q.States()) != 1 {
			t.Errorf("%d cancelled, %v", cancelled, q.States())
		}
		again := want("b", func(w *image.Want) { w.Version = 2 })
		q.Set([]image.Want{again}, nil)
		time.Sleep(2 * time.Minute)
		if s := expect(t, q, "b", v1beta1.ImagePhaseSucceeded); cancelled != 2 || s.ImageID != "sha256:2" {
			t.Errorf("%d cancelled, %+v", cancelled, s)
		}
		q.Set([]image.Want{again}, nil)
		time.Sleep(time.Minute)
		if p.calls["b:latest"] != 2 {
			t.Errorf("%d pulls", p.calls["b:latest"])
		}
	})
}

func TestChangedPolicyHoldsFromTheNextAttempt(t *testing.T) {
	t.Parallel()
	for retries, message := range map[int]string{1: "attempt 2 of 2 failed: 500", 0: "attempt 1 of 1 failed: 500"} {
		inQueue(t, 1, func(p *puller, q *queue.Queue) {
			p.pull = func(context.Context, image.Want, int, func(int64, int64)) (string, error) {
				return "", errors.New("500")
			}
			q.Set([]image.Want{want("a")}, nil)
			expect(t, q, "a", v1beta1.ImagePhaseWaiting)
			q.Set([]image.Want{want("a", func(w *image.Want) { w.Retries = retries })}, nil)
			time.Sleep(2 * time.Second)
			if s := expect(t, q, "a", v1beta1.ImagePhaseFailed); s.Message != message || p.calls["a:latest"] != retries+1 {
				t.Errorf("%d retries: message %q after %d attempts, want %q", retries, s.Message, p.calls["a:latest"], message)
			}
		})
	}
}

// For example when, of two jobs that want the image, the one without a deadline is deleted.
func TestADeadlineThatIsSetDuringAPullEndsIt(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		p.pull = func(context.Context, image.Want, int, func(int64, int64)) (string, error) {
			return "", errors.New("503")
		}
		q.Set([]image.Want{want("a")}, nil)
		expect(t, q, "a", v1beta1.ImagePhaseWaiting, "next attempt is in 1s")
		q.Set([]image.Want{want("a", func(w *image.Want) { w.Deadline = 2 * time.Second })}, nil)
		time.Sleep(1500 * time.Millisecond) // the third attempt would be after 3 s
		expect(t, q, "a", v1beta1.ImagePhaseFailed, "no further attempt within activeDeadlineSeconds 2")
	})
}

// A daemon that comes back does not pull again what it has dealt with.
func TestKnownStateIsKept(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		status := v1beta1.NodeImageStatus{ImageStatuses: map[string]v1beta1.ImageStatus{"a": {Tags: []v1beta1.ImageTagStatus{
			{Tag: "latest", Phase: v1beta1.ImagePhaseFailed, Message: "404", Version: 1},
			{Tag: "v2", Phase: v1beta1.ImagePhasePulling, Version: 1},
		}}}}
		version := func(w *image.Want) { w.Version = 1 }
		q.Set([]image.Want{want("a", version), want("a:v2", version)}, func(w image.Want) (image.State, bool) { return image.Known(&status, w) })
		time.Sleep(2 * time.Second)
		expect(t, q, "a", v1beta1.ImagePhaseFailed, "404")
		expect(t, q, "a:v2", v1beta1.ImagePhaseSucceeded)
		if !slices.Equal(p.pulls(), []string{"a:v2"}) {
			t.Errorf("pulls %q", p.pulls())
		}
	})
}

func TestMalformedReferenceFailsAtOnce(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		bad := image.Want{Target: image.Target{Reference: image.Reference{Repository: "A b", Tag: "x"}}, Retries: 3}
		q.Set([]image.Want{bad}, nil)
		synctest.Wait()
		if s := q.States()[bad.Target]; s.Phase != v1beta1.ImagePhaseFailed || !strings.Contains(s.Message, "invalid image reference") {
			t.Errorf("%+v", s)
		}
		if len(p.pulls()) != 0 {
			t.Errorf("pulls %q", p.pulls())
		}
	})
}

func TestStopWaitsForPulls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, ended := newPuller(), false
		p.pull = func(ctx context.Context, _ image.Want, _ int, _ func(int64, int64)) (string, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // the runtime takes its time
			ended = true
			return "", ctx.Err()
		}
		q := queue.New(t.Context(), queue.Config{Puller: p})
		q.Set([]image.Want{want("a"), want("b")}, nil)
		synctest.Wait()
		if q.Stop(); !ended || len(p.pulls()) != 1 {
			t.Errorf("ended %t, pulls %q", ended, p.pulls())
		}
	})
}
