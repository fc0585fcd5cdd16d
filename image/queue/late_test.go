package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
)

func TestBytesOfAPullAreToldAsTheyCome(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		p.pull = func(_ context.Context, _ image.Want, _ int, report func(int64, int64)) (string, error) {
			for pulled := range int64(10) {
				report(pulled, 10)
				time.Sleep(time.Second)
			}
			return "sha256:1", nil
		}
		q.Set([]image.Want{want("a")}, nil)
		time.Sleep(4500 * time.Millisecond)
		if s := expect(t, q, "a", v1beta1.ImagePhasePulling); s.Pulled != 4 || s.Total != 10 {
			t.Errorf("%d of %d bytes", s.Pulled, s.Total)
		}
	})
}

// Only a further attempt says which one it is, whatever becomes of the policy.
func TestAChangedPolicySaysNothingOfAFirstAttempt(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(_ *puller, q *queue.Queue) {
		for _, retries := range []int{3, 0, 5} {
			q.Set([]image.Want{want("a", func(w *image.Want) { w.Retries, w.CreatedAt = retries, time.Unix(1, 0) }), want("b", func(w *image.Want) { w.Retries = retries; w.CreatedAt = time.Unix(2, 0) })}, nil)
			for text, phase := range map[string]v1beta1.ImagePullPhase{"a": v1beta1.ImagePhasePulling, "b": v1beta1.ImagePhaseWaiting} {
				if s := expect(t, q, text, phase); s.Message != "" {
					t.Errorf("%s with %d retries: %q", text, retries, s.Message)
				}
			}
		}
	})
}

// A cancelled pull may still succeed, if the runtime has not noticed the cancellation.
func TestAnImageThatIsThereAfterItsTimeHasBeenPulled(t *testing.T) {
	t.Parallel()
	inQueue(t, 1, func(p *puller, q *queue.Queue) {
		p.pull = func(context.Context, image.Want, int, func(int64, int64)) (string, error) {
			time.Sleep(2 * time.Second)
			return "sha256:1", nil
		}
		q.Set([]image.Want{want("a", func(w *image.Want) { w.Timeout = time.Second })}, nil)
		time.Sleep(3 * time.Second)
		if s := expect(t, q, "a", v1beta1.ImagePhaseSucceeded); s.ImageID != "sha256:1" {
			t.Errorf("%+v", s)
		}
	})
}

// The program ends: what was under way begins anew after its restart, and has not failed.
func TestAPullThatIsStoppedHasNotFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ends := make(chan image.State, 10)
		q := queue.New(t.Context(), queue.Config{Puller: newPuller(), Ended: func(_ image.Want, s image.State) { ends <- s }})
		q.Set([]image.Want{want("a", func(w *image.Want) { w.Retries = 0 })}, nil)
		time.Sleep(500 * time.Millisecond)
		q.Stop()
		if s := expect(t, q, "a", v1beta1.ImagePhasePulling); len(ends) != 0 {
			t.Errorf("an end was reported: %+v", s)
		}
	})
}
