package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// askInterval is between requests to one pod; with more pods it is longer, so that asking does not use up the machine.
	askInterval = 20 * time.Millisecond
	askPods     = 5
	// askPatience bounds the wait for an answer after the work has ended.
	askPatience = time.Minute
	askTimeout  = 150 * time.Millisecond
)

// asker sends requests to the pods of one name, one after another, and adds up for how long none is answered.
type asker struct {
	client *http.Client
	watch  *watcher
	pod    string
	every  time.Duration

	answered   time.Time // the last answer
	failing    bool
	unanswered time.Duration
}

func newAsker(watch *watcher, pod string, pods int) *asker {
	return &asker{
		client: &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}, watch: watch, pod: pod,
		every: askInterval * time.Duration(max(1, pods/askPods)), answered: time.Now(),
	}
}

// run asks until ctx ends, and then until it is answered.
func (a *asker) run(ctx context.Context) {
	ticker := time.NewTicker(a.every)
	defer ticker.Stop()
	for ctx.Err() == nil || a.failing && time.Since(a.answered) < askPatience {
		a.ask(context.WithoutCancel(ctx))
		<-ticker.C
	}
}

// ask tries the newest pod of the name first: a Service sends nothing to one that is being deleted, but while there is no
// other the application is there as long as that one answers.
func (a *asker) ask(ctx context.Context) {
	addresses := a.watch.addressesOf(a.pod)
	for i := len(addresses) - 1; i >= 0; i-- {
		if !a.answers(ctx, addresses[i]) {
			continue
		}
		if a.failing {
			a.unanswered += time.Since(a.answered)
		}
		a.answered, a.failing = time.Now(), false
		return
	}
	a.failing = len(addresses) > 0
}

func (a *asker) answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d/", address, port), nil)
	if err != nil {
		return false
	}
	response, err := a.client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
