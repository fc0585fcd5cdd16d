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

// Config is all that an Updater needs to know.
type Config struct {
	// Dir is the folder shared with the program. It must exist.
	Dir    string
	Fetch  fetch.Config
	Limits payload.Limits
	// MaxTotal bounds all revisions on disk together, in bytes: older ones are removed first, and the current one
	// stays. 2 GiB when zero.
	MaxTotal int64
	// Keys from payload.ParseKey; when there are any, one of them must have signed each source that is not trusted.
	Keys []crypto.PublicKey
	// StoreQueries permits queries of URLs in manifests; they may hold credentials.
	StoreQueries bool
	// Precheck judges a candidate before anything changes.
	Precheck []action.Action
	// Reload tells the program, in this order. None is right for a program that watches its files.
	Reload []action.Action
	Verify action.Verification
	// Keep is how many accepted revisions stay on disk, the current one included; 5 when zero.
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

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	if !filepath.IsAbs(c.Dir) {
		faults = append(faults, fmt.Errorf("folder %q: not an absolute path", c.Dir))
	}
	if c.Keep < 0 || c.Keep == 1 {
		faults = append(faults, fmt.Errorf("keep %d revisions: want 2 or more, or 0 for the default", c.Keep))
	}
	for _, n := range []int64{int64(c.Fetch.Timeout), int64(c.Fetch.Attempts), c.Fetch.MaxBytes, int64(c.Limits.MaxFiles),
		c.Limits.MaxUnpacked, c.MaxTotal, int64(c.RollbackTimeout), int64(c.Verify.Within), int64(c.Verify.For), int64(c.Verify.Interval)} {
		if n < 0 {
			faults = append(faults, errors.New("timeouts, attempts and limits may not be negative"))
			break
		}
	}
	for _, a := range slices.Concat(c.Precheck, c.Reload, c.Verify.Checks) {
		if a.Step == nil || a.Name == "" || a.Timeout < 0 || a.Pause < 0 {
			faults = append(faults, fmt.Errorf("action %q: needs a name, a step and no negative times", a.Name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("hot update: %w", err)
	}
	return nil
}
