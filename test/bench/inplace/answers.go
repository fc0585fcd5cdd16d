package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/refit-project/refit/test/kit/downtime"
)

const (
	// askInterval is between requests to one pod; with more pods it is longer, so that asking does not use up the machine.
	askInterval = 20 * time.Millisecond
	askPods     = 5
	askTimeout  = 150 * time.Millisecond
)

// unanswered sends requests to the pods of one name, one after another, and adds up for how long none is answered.
func (w *watcher) unanswered(ctx context.Context, pod string, pods int) time.Duration {
	asked := &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	return downtime.Unanswered(ctx, askInterval*time.Duration(max(1, pods/askPods)), func(ctx context.Context) bool {
		// The newest pod of the name first: a Service sends nothing to one that is being deleted, but while there is no
		// other the application is there as long as that one answers.
		addresses := w.addressesOf(pod)
		slices.Reverse(addresses)
		return len(addresses) == 0 || slices.ContainsFunc(addresses, func(address string) bool {
			return downtime.Answers(ctx, asked, fmt.Sprintf("http://%s:%d/", address, port))
		})
	})
}
