package main

import (
	"context"
	"fmt"
	"time"
)

// measure pulls all images by jobs and with ctr in turn.
func (c *cluster) measure(ctx context.Context, parallel, rounds int) (result, error) {
	found := result{Parallel: parallel}
	if err := c.daemonPulls(ctx, parallel); err != nil {
		return found, err
	}
	for round := range rounds {
		for i := range 2 {
			var err error
			// Neither is always the first, after which more is in the caches of the machine.
			if (round+i)%2 == 0 {
				err = c.time(ctx, &found.Ctr, func() error { return c.pullByCtr(ctx, parallel) })
			} else {
				err = c.jobs(ctx, &found)
			}
			if err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// time measures one pull of all images, and removes them.
func (c *cluster) time(ctx context.Context, into *[]time.Duration, pull func() error) error {
	began := time.Now()
	if err := pull(); err != nil {
		return err
	}
	*into = append(*into, time.Since(began))
	return c.forget(ctx)
}

func (c *cluster) jobs(ctx context.Context, found *result) error {
	writes, err := c.watchStatus(ctx)
	if err != nil {
		return err
	}
	err = c.time(ctx, &found.Jobs, func() error { return c.pullByJobs(ctx) })
	found.Writes = append(found.Writes, writes())
	if err != nil {
		return fmt.Errorf("pull by jobs: %w", err)
	}
	return c.removeJobs(ctx)
}
