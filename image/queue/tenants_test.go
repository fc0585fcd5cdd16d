package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/wait"
)

// of is a pull for a namespace.
func of(namespace, text string, change ...func(*image.Want)) image.Want {
	w := want(text, change...)
	w.Namespace = namespace
	return w
}

// A registry that does not answer, with as long a time-out as its owner likes, takes no slot of the others.
func TestPullsThatHangDoNotHoldUpOtherNamespaces(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{1, 3} {
		inQueue(t, parallel, func(p *puller, q *queue.Queue) {
			p.pull = func(ctx context.Context, w image.Want, _ int, _ func(int64, int64)) (string, error) {
				if w.Namespace == "mallory" {
					<-ctx.Done()
					return "", ctx.Err()
				}
				return "sha256:1", wait.For(ctx, time.Second)
			}
			var wants []image.Want
			for i := range 300 {
				wants = append(wants, of("mallory", fmt.Sprint("hangs", i)))
			}
			q.Set(wants, nil)
			time.Sleep(time.Second)
			if synctest.Wait(); len(p.pulls()) != max(parallel-1, 1) { // the limit of the runtime is left for others
				t.Errorf("parallel %d: %d of one namespace", parallel, len(p.pulls()))
			}
			for i := range 5 {
				wants = append(wants, of("shop", fmt.Sprint("app", i), func(w *image.Want) { w.CreatedAt = time.Now() }))
			}
			q.Set(wants, nil)
			time.Sleep(6 * time.Second)
			synctest.Wait()
			for i := range 5 {
				if s := q.States()[of("shop", fmt.Sprint("app", i)).Target]; s.Phase != v1beta1.ImagePhaseSucceeded {
					t.Errorf("parallel %d: app%d is %s", parallel, i, s.Phase)
				}
			}
			if p.most > 2*parallel {
				t.Errorf("parallel %d: %d at once", parallel, p.most)
			}
		})
	}
}

// One namespace has no more than it would have alone, and the node no more than twice as many.
func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	inQueue(t, 2, func(p *puller, q *queue.Queue) {
		p.pull = func(ctx context.Context, _ image.Want, _ int, _ func(int64, int64)) (string, error) {
			return "sha256:1", wait.For(ctx, time.Minute)
		}
		var wants []image.Want
		for _, namespace := range []string{"a", "b", "c", "d", "e"} {
			for i := range 3 {
				wants = append(wants, of(namespace, fmt.Sprint(namespace, i)))
			}
		}
		q.Set(wants, nil)
		synctest.Wait()
		if got := fmt.Sprint(slices.Sorted(slices.Values(p.pulls()))); got != "[a0:latest b0:latest c0:latest d0:latest]" {
			t.Errorf("first are %s", got)
		}
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(slices.Sorted(slices.Values(p.pulls()[4:]))); got != "[a1:latest b1:latest c1:latest e0:latest]" {
			t.Errorf("then %s", got)
		}
	})
}

// Layers are transferred once if the first is quick, and nobody waits for one that is not.
func TestPullOfTheSameImageForAnotherNamespaceIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	inQueue(t, 3, func(p *puller, q *queue.Queue) {
		p.pull = func(ctx context.Context, w image.Want, _ int, _ func(int64, int64)) (string, error) {
			if w.Namespace == "a" {
				return "sha256:1", wait.For(ctx, time.Hour)
			}
			return "sha256:1", wait.For(ctx, time.Second)
		}
		q.Set([]image.Want{of("a", "app"), of("b", "app", func(w *image.Want) { w.CreatedAt = time.Now() })}, nil)
		time.Sleep(29 * time.Second)
		if synctest.Wait(); len(p.pulls()) != 1 {
			t.Errorf("%d pulls after 29 s", len(p.pulls()))
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if s := q.States()[of("b", "app").Target]; s.Phase != v1beta1.ImagePhaseSucceeded {
			t.Errorf("the second is %s", s.Phase)
		}
	})
}

// If a secret of another namespace has brought the image onto the node, this namespace may still not be allowed to pull it.
func TestImagePulledWithASecretCountsForItsNamespaceOnly(t *testing.T) {
	t.Parallel()
	inQueue(t, 3, func(p *puller, q *queue.Queue) {
		p.pull = func(_ context.Context, w image.Want, _ int, _ func(int64, int64)) (string, error) {
			if len(w.Secrets) == 0 {
				return "", errors.New("401")
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.present[w.String()] = "sha256:1"
			return "sha256:1", nil
		}
		secret := func(w *image.Want) { w.Secrets = []v1beta1.ReferenceObject{{Name: "s"}} }
		once := func(w *image.Want) { w.Retries = 0 }
		wants := []image.Want{of("shop", "app", secret), of("mallory", "app", once)}
		q.Set(wants, nil)
		time.Sleep(time.Minute)
		wants[0].Version++ // it stays so, when it is looked for again
		wants = append(wants, of("mallory", "app:v2", once))
		q.Set(wants, nil)
		time.Sleep(time.Minute)
		wants[1].Version++
		q.Set(wants, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		states := q.States()
		if got := string(states[wants[0].Target].Phase + " " + states[wants[1].Target].Phase); got != "Succeeded Failed" {
			t.Errorf("%s", got)
		}
		if n := p.calls["app:latest"]; n != 3 {
			t.Errorf("%d pulls of the image, want 1 of shop and 2 of mallory", n)
		}
	})
}

// refit-manager removes finished pulls of a namespace that has many.
func TestImagePulledWithASecretCountsForItsNamespaceOnlyAfterItsPullIsRemoved(t *testing.T) {
	t.Parallel()
	inQueue(t, 3, func(p *puller, q *queue.Queue) {
		p.pull = func(_ context.Context, w image.Want, _ int, _ func(int64, int64)) (string, error) {
			if len(w.Secrets) == 0 {
				return "", errors.New("401")
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.present[w.String()] = "sha256:1"
			return "sha256:1", nil
		}
		once := func(w *image.Want) { w.Retries = 0 }
		q.Set([]image.Want{of("shop", "app", func(w *image.Want) { w.Secrets = []v1beta1.ReferenceObject{{Name: "s"}} })}, nil)
		synctest.Wait()
		q.Set(nil, nil)
		time.Sleep(23 * time.Hour)
		wants := []image.Want{of("shop", "app", once), of("mallory", "app", once)}
		q.Set(wants, nil)
		time.Sleep(time.Minute) // the second waits for the first
		synctest.Wait()
		states := q.States()
		if got := string(states[wants[0].Target].Phase + " " + states[wants[1].Target].Phase); got != "Succeeded Failed" {
			t.Errorf("%s", got)
		}
		q.Set(nil, nil)
		time.Sleep(2 * time.Hour)
		q.Set(wants[1:], nil)
		synctest.Wait()
		if s := q.States()[wants[1].Target]; s.Phase != v1beta1.ImagePhaseSucceeded {
			t.Errorf("after a day: %s", s.Phase)
		}
	})
}

// The pull of a deleted job may succeed although it was cancelled, and so may the pull of a job that another one has replaced.
func TestImageOfACancelledPullWithASecretCountsForItsNamespaceOnly(t *testing.T) {
	t.Parallel()
	secret := func(w *image.Want) { w.Secrets = []v1beta1.ReferenceObject{{Name: "s"}} }
	again := of("shop", "app", secret)
	again.Version++
	for name, then := range map[string][]image.Want{"its job is deleted": nil, "another version is wanted": {again}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inQueue(t, 3, func(p *puller, q *queue.Queue) {
				p.pull = func(_ context.Context, w image.Want, _ int, _ func(int64, int64)) (string, error) {
					if len(w.Secrets) == 0 {
						return "", errors.New("401")
					}
					time.Sleep(time.Second)
					p.mu.Lock()
					defer p.mu.Unlock()
					p.present[w.String()] = "sha256:1"
					return "sha256:1", nil
				}
				q.Set([]image.Want{of("shop", "app", secret)}, nil)
				time.Sleep(500 * time.Millisecond)
				q.Set(then, nil)
				time.Sleep(time.Minute)
				other := of("mallory", "app", func(w *image.Want) { w.Retries = 0 })
				q.Set(append(slices.Clone(then), other), nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				states := q.States()
				if s := states[other.Target]; s.Phase != v1beta1.ImagePhaseFailed {
					t.Errorf("without a secret: %s", s.Phase)
				}
				for _, want := range then {
					if s := states[want.Target]; s.Phase != v1beta1.ImagePhaseSucceeded || !s.WithSecret {
						t.Errorf("%s, with a secret: %t", s.Phase, s.WithSecret)
					}
				}
			})
		})
	}
}

// A job has the outcome that it has seen, whatever comes of a pull for a later one.
func TestOutcomeOfAnEarlierVersionIsKept(t *testing.T) {
	t.Parallel()
	inQueue(t, 3, func(p *puller, q *queue.Queue) {
		p.pull = func(_ context.Context, _ image.Want, n int, _ func(int64, int64)) (string, error) {
			if n > 1 {
				return "", errors.New("503")
			}
			return "sha256:1", nil
		}
		first := of("shop", "app", func(w *image.Want) { w.Jobs = map[types.UID]int64{"one": 0}; w.Retries = 0 })
		q.Set([]image.Want{first}, nil)
		synctest.Wait()
		second := first
		second.Version, second.Jobs = 1, map[types.UID]int64{"one": 0, "two": 1}
		q.Set([]image.Want{second}, nil)
		synctest.Wait()
		state := q.States()[first.Target]
		want := map[types.UID]image.Outcome{"one": {Version: 0, Phase: v1beta1.ImagePhaseSucceeded}}
		if diff := cmp.Diff(want, state.Earlier); diff != "" || state.Phase != v1beta1.ImagePhaseFailed {
			t.Errorf("%s (-want +got):\n%s", state.Phase, diff)
		}
	})
}
