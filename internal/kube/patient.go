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

// reconnectDelay is the time between attempts to reach an API server that does not answer at all, plus up to as much at
// random.
const reconnectDelay = time.Second

// patient lets a cache retry soon while the API server cannot be reached. By default client-go's reflector backs off up to
// a minute, so that after an outage of half a minute the caches would be updated half a minute late. Responses of the API
// server, such as 429 and 503, are left to the reflector's back-off, which is for a server under load.
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
		// The HTTP client wraps exactly the errors of requests that were not answered in this type.
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
