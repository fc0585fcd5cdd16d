// Package downtime measures for how long requests are not answered, for benchmarks and demos.
package downtime

import (
	"context"
	"net/http"
	"time"
)

// patience bounds the wait for an answer after ctx has ended.
const patience = time.Minute

// Unanswered adds up for how long answers reports false, from the last answer to the next one, until ctx ends. What has begun by then
// is followed to its end.
func Unanswered(ctx context.Context, every time.Duration, answers func(context.Context) bool) time.Duration {
	var total time.Duration
	answered, failing := time.Now(), false
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ; ctx.Err() == nil || failing && time.Since(answered) < patience; <-ticker.C {
		if !answers(context.WithoutCancel(ctx)) {
			failing = true
			continue
		}
		if failing {
			total += time.Since(answered)
		}
		answered, failing = time.Now(), false
	}
	return total
}

// Answers reports whether a GET is answered with 200.
func Answers(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
