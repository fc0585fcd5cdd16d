package queue_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// puller is a registry and a node without either.
type puller struct {
	mu      sync.Mutex
	pull    func(ctx context.Context, want image.Want, n int, report func(int64, int64)) (string, error)
	present map[string]string
	unseen  error // answer to the question what is present
	calls   map[string]int
	order   []string
	most    int
	now     map[string]bool
}

func newPuller() *puller {
	return &puller{
		present: map[string]string{}, calls: map[string]int{}, now: map[string]bool{},
		pull: func(ctx context.Context, _ image.Want, _ int, _ func(int64, int64)) (string, error) {
			return "sha256:1", wait.For(ctx, time.Second)
		},
	}
}

func (p *puller) Present(_ context.Context, r image.Reference) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.present[r.String()], p.unseen
}

func (p *puller) Pull(ctx context.Context, want image.Want, report func(int64, int64)) (queue.Pulled, error) {
	full, err := want.Full()
	if err != nil {
		return queue.Pulled{}, err
	}
	full = want.Namespace + " " + full
	p.mu.Lock()
	p.calls[want.String()]++
	p.order = append(p.order, want.String())
	if p.now[full] {
		p.mu.Unlock()
		panic(full + " is pulled twice at once")
	}
	p.now[full] = true
	p.most = max(p.most, len(p.now))
	n := p.calls[want.String()]
	p.mu.Unlock()
	defer func() { p.mu.Lock(); delete(p.now, full); p.mu.Unlock() }()
	id, err := p.pull(ctx, want, n, report)
	return queue.Pulled{ID: id, WithSecret: len(want.Secrets) > 0}, err
}

// pulls are all that were begun, in their order.
func (p *puller) pulls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.order)
}

func want(text string, change ...func(*image.Want)) image.Want {
	reference, err := image.Parse(text)
	if err != nil {
		panic(err)
	}
	w := image.Want{Target: image.Target{Reference: reference}, Timeout: 10 * time.Minute, Retries: 3}
	for _, c := range change {
		c(&w)
	}
	return w
}

func inQueue(t *testing.T, parallel int, test func(*puller, *queue.Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPuller()
		q := queue.New(t.Context(), queue.Config{Puller: p, Parallel: parallel})
		defer q.Stop()
		test(p, q)
	})
}

func expect(t *testing.T, q *queue.Queue, text string, phase v1beta1.ImagePullPhase, words ...string) image.State {
	t.Helper()
	synctest.Wait()
	state := q.States()[want(text).Target]
	if state.Phase != phase {
		t.Errorf("%s is %s (%s), want %s", text, state.Phase, state.Message, phase)
	}
	for _, w := range words {
		if !strings.Contains(state.Message, w) {
			t.Errorf("%s: message %q lacks %q", text, state.Message, w)
		}
	}
	return state
}
