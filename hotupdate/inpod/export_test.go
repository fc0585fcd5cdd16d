package inpod

import (
	"context"
	"time"

	"github.com/refit-project/refit/plugin"
)

// NewWithin is New with a replacement for context.WithDeadline.
func NewWithin(within func(context.Context, time.Time) (context.Context, context.CancelFunc)) plugin.Plugin {
	p := New().(*Plugin)
	p.within = within
	return p
}
