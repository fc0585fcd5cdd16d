package image_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// puller is a registry and a node without either.
type puller struct {
	mu      sync.Mutex
	pull    func(ctx context.Context, want image.Want, n int, report func(int64, int64)) (string, error)
	present map[string]string
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
	return p.present[r.String()], nil
}

func (p *puller) Pull(ctx context.Context, want image.Want, report func(int64, int64)) (string, error) {
	full, err := want.Full()
	if err != nil {
		return "", err
	}
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
	return p.pull(ctx, want, n, report)
}

func want(text string, change ...func(*image.Want)) image.Want {
	reference, err := image.Parse(text)
	if err != nil {
		panic(err)
	}
	w := image.Want{Reference: reference, Timeout: 10 * time.Minute, Retries: 3}
	for _, c := range change {
		c(&w)
	}
	return w
}

func inQueue(t *testing.T, parallel int, test func(*puller, *image.Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPuller()
		q := image.NewQueue(t.Context(), image.QueueConfig{Puller: p, Parallel: parallel})
		defer q.Stop()
		test(p, q)
	})
}

func expect(t *testing.T, q *image.Queue, text string, phase v1beta1.ImagePullPhase, words ...string) image.State {
	t.Helper()
	synctest.Wait()
	state := q.States()[want(text).Reference]
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
