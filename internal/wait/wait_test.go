package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/wait"
)

func TestFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		d, ends, took time.Duration // ends: when the context does; 0: never, negative: before
	}{
		"passes":                         {d: time.Second, took: time.Second},
		"context ends":                   {d: time.Hour, ends: time.Second, took: time.Second},
		"context has ended":              {d: time.Hour, ends: -1},
		"nothing to wait for":            {d: -time.Second},
		"nothing, and the context ended": {d: 0, ends: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ends < 0 {
					cancel()
				} else if tt.ends > 0 {
					time.AfterFunc(tt.ends, cancel)
				}
				began := time.Now()
				err := wait.For(ctx, tt.d)
				if took := time.Since(began); took != tt.took || errors.Is(err, context.Canceled) != (tt.ends != 0) {
					t.Errorf("%v after %s, want %s", err, took, tt.took)
				}
			})
		})
	}
}
