package hotupdate

import (
	"crypto"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/payload"
)

// Config is the configuration of an Updater.
type Config struct {
	// Dir is the folder shared with the program. It must exist.
	Dir    string
	Fetch  fetch.Config
	Limits payload.Limits
	// MaxTotal bounds the size of all revisions on disk together, in bytes; 2 GiB when zero. The oldest revisions are
	// removed first, and the current one never.
	MaxTotal int64
	// Keys come from payload.ParseKey. If there are any, each source that is not trusted must be signed with one of them.
	Keys []crypto.PublicKey
	// StoreQueries allows URLs with a query in manifests. Queries may contain credentials.
	StoreQueries bool
	// Precheck checks a candidate before anything is changed.
	Precheck []action.Action
	// Reload are the actions that reload the program, in this order. A program that watches its files needs none.
	Reload []action.Action
	Verify action.Verification
	// Keep is the number of accepted revisions on disk, including the current one; 5 when zero.
	Keep int
	// RollbackTimeout bounds the reload after a roll back; 30 s when zero.
	RollbackTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Keep == 0 {
		c.Keep = 5
	}
	if c.RollbackTimeout == 0 {
		c.RollbackTimeout = 30 * time.Second
	}
	if c.MaxTotal == 0 {
		c.MaxTotal = 2 << 30
	}
	c.Fetch, c.Limits = c.Fetch.WithDefaults(), c.Limits.WithDefaults()
	return c
}

// Validate returns all errors at once.
func (c Config) Validate() error {
	var errs []error
	if !filepath.IsAbs(c.Dir) {
		errs = append(errs, fmt.Errorf("folder %q: not an absolute path", c.Dir))
	}
	if c.Keep < 0 || c.Keep == 1 {
		errs = append(errs, fmt.Errorf("keep %d revisions: want 2 or more, or 0 for the default", c.Keep))
	}
	for _, n := range []int64{int64(c.Fetch.Timeout), int64(c.Fetch.Attempts), c.Fetch.MaxBytes, int64(c.Limits.MaxFiles),
		c.Limits.MaxUnpacked, c.MaxTotal, int64(c.RollbackTimeout), int64(c.Verify.Within), int64(c.Verify.For), int64(c.Verify.Interval)} {
		if n < 0 {
			errs = append(errs, errors.New("timeouts, attempts and limits may not be negative"))
			break
		}
	}
	for _, a := range slices.Concat(c.Precheck, c.Reload, c.Verify.Checks) {
		if a.Step == nil || a.Name == "" || a.Timeout < 0 || a.Pause < 0 {
			errs = append(errs, fmt.Errorf("action %q: needs a name, a step and no negative times", a.Name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("hot update: %w", err)
	}
	return nil
}
