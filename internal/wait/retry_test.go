package wait_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/wait"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		succeeds, ends, took time.Duration // from the start; 0: never
		lines                int
	}{
		"at once":      {succeeds: time.Nanosecond, took: 0},
		"in a while":   {succeeds: 5 * time.Second, took: 5 * time.Second, lines: 1},
		"much later":   {succeeds: 150 * time.Second, took: 150 * time.Second, lines: 3},
		"context ends": {ends: 1500 * time.Millisecond, took: 1500 * time.Millisecond, lines: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, cancel)
				}
				var log bytes.Buffer
				began := time.Now()
				err := wait.Retry(ctx, slog.New(slog.NewTextHandler(&log, nil)), "reach it", func() error {
					if tt.succeeds == 0 || time.Since(began).Truncate(time.Second) < tt.succeeds.Truncate(time.Second) {
						return errors.New("connection refused")
					}
					return nil
				})
				if took := time.Since(began); took != tt.took || errors.Is(err, context.Canceled) != (tt.ends > 0) {
					t.Errorf("%v after %s, want %s", err, took, tt.took)
				}
				if n := strings.Count(log.String(), "cannot reach it yet, retrying"); n != tt.lines {
					t.Errorf("%d log lines, want %d:\n%s", n, tt.lines, log.String())
				}
			})
		})
	}
}
