package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/refit-project/refit/internal/console"
)

// UpdateAll changes the files of several pods, at most parallelism of them at a time. After a failure it begins no further pod; the
// pods that have begun are completed.
func UpdateAll(ctx context.Context, configs []Config, change Change, parallelism int) error {
	if len(configs) == 0 {
		return nil
	}
	ctx, cancel := configs[0].limited(ctx)
	defer cancel()
	errs := make([]error, len(configs))
	free := make(chan struct{}, parallelism)
	var failed atomic.Bool
	var group sync.WaitGroup
	begun := 0
	for i := range configs {
		free <- struct{}{}
		if failed.Load() || ctx.Err() != nil {
			break
		}
		begun++
		group.Go(func() {
			defer func() { <-free }()
			one := configs[i]
			one.Timeout = 0 // the one of all pods
			if errs[i] = Update(ctx, one, change); errs[i] != nil {
				failed.Store(true)
			}
		})
	}
	group.Wait()
	return outcome(ctx, configs, errs, begun)
}

// outcome returns the error of an update of several pods.
func outcome(ctx context.Context, configs []Config, errs []error, begun int) error {
	err := errors.Join(errs...)
	if err == nil && begun < len(configs) {
		err = console.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	done, rest := 0, ""
	for i := range configs {
		switch {
		case i >= begun:
			rest += " " + configs[i].Pod
		case errs[i] == nil:
			done++
		}
	}
	text := fmt.Sprintf("\n  done: %d of %d pods", done, len(configs))
	if rest != "" {
		text += "\n  not begun:" + rest
	}
	if done > 0 && console.ExitCode(err) == console.ExitRefused { // something has been changed
		return fmt.Errorf("%w: %s%s", console.ErrFailed, strings.ReplaceAll(err.Error(), console.ErrRefused.Error()+": ", ""), text)
	}
	return fmt.Errorf("%w%s", err, text)
}
