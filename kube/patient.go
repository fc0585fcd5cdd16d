package kube

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// reconnectDelay is between attempts to reach an API server that does not answer at all, and as much again by chance.
const reconnectDelay = time.Second

// patient has a cache ask again soon while the API server cannot be reached. Left alone, client-go's reflector backs
// off up to a minute, so that after an outage of half a minute the caches come back half a minute late. What the
// API server itself answers, 429 and 503 among it, is left to the reflector's back-off: that is for a server under load.
func patient(source *cache.ListWatch) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return untilReached(ctx, func() (runtime.Object, error) { return source.ListWithContextFunc(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return untilReached(ctx, func() (watch.Interface, error) { return source.WatchFuncWithContext(ctx, options) })
		},
	}
}

func untilReached[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		// The HTTP client wraps what keeps a request from being answered, and only that, in this type.
		var unanswered *url.Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &unanswered) {
			return answer, err
		}
		timer := time.NewTimer(reconnectDelay + rand.N(reconnectDelay)) //nolint:gosec // jitter, not a secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		}
	}
}
