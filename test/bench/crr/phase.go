package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	// relistPeriod is kubelet's: it looks for exited containers once a second.
	relistPeriod = time.Second
	relistCount  = "\nkubelet_pleg_relist_interval_seconds_count "
	relistPoll   = 10 * time.Millisecond
)

// align returns at the given time after a relist of kubelet's. A restart takes up to a second longer or less by
// where in that second it begins, which is more than all that is to be told apart here: so both sides begin at
// the same places in it.
func (c *cluster) align(ctx context.Context, after time.Duration) error {
	last := ""
	for {
		before := time.Now()
		count, err := c.relists(ctx)
		if err != nil {
			return err
		}
		if last != "" && count != last {
			return wait.For(ctx, after-time.Since(before))
		}
		last = count
		if err := wait.For(ctx, relistPoll); err != nil {
			return err
		}
	}
}

func (c *cluster) relists(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.rest.Host+"/api/v1/nodes/"+testcluster.Node+"/proxy/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("read kubelet's metrics: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read kubelet's metrics: %w", err)
	}
	_, rest, found := bytes.Cut(body, []byte(relistCount))
	if !found {
		return "", errors.New("read kubelet's metrics: it does not count its relists: " + response.Status)
	}
	count, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(count), nil
}
