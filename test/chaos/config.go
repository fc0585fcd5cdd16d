package chaos

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
	"github.com/refit-project/refit/test/chaos/meetings"
	"github.com/refit-project/refit/test/chaos/records"
)

// Config of a run.
type Config struct {
	// State is the .cluster folder of the cluster, on which Refit is installed.
	State string
	// Image is testapp's, as the cluster can pull it.
	Image string
	// Sidecar is the image of refit-sidecar.
	Sidecar string
	// Records is a folder for what the verdict is based on. It is emptied first.
	Records string
	// Duration of the faults, and longer if some kind has not happened, or too few daemons have been killed, by then. What comes before and after takes about
	// a minute more.
	Duration time.Duration
	// Pods that are worked on, and Rate of requests per second over all of them.
	Pods int
	Rate float64
	// Calm is a run without faults, in which processes live long enough to show what they do not give back.
	Calm bool
	// Outages restricts the run to outages of these names, as they last in a long run; none: to the outages for its length.
	Outages []string
	// Meetings are the names of what is made to meet on the pods of workloads; none: all, or none in a short run.
	Meetings []string
	// KruiseCRDs lets the run take place under CRDs that drop the fields that OpenKruise's CRDs drop.
	KruiseCRDs bool
	// Seed of the choices; the same seed makes the same choices at other moments.
	Seed uint64
	// Out receives progress.
	Out io.Writer
}

// small is the shortest run in which each kind of fault happens once.
const small = time.Minute

// ValidateLoad reports all faults of what needs no cluster to be judged.
func (c Config) ValidateLoad() error {
	var errs []error
	if c.Duration < small {
		errs = append(errs, fmt.Errorf("duration %s: want at least %s, or not every fault happens", c.Duration, small))
	}
	if c.Pods < 1 || c.Rate <= 0 {
		errs = append(errs, fmt.Errorf("%d pods and %v requests a second: want more than none", c.Pods, c.Rate))
	}
	for _, name := range c.Meetings {
		if !slices.Contains(meetings.Names(), name) {
			errs = append(errs, fmt.Errorf("meeting %q: want some of %q", name, meetings.Names()))
		}
	}
	return errors.Join(errs...)
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	errs := []error{c.ValidateLoad()}
	if _, err := os.Stat(filepath.Join(c.State, "bin", "cluster")); err != nil {
		errs = append(errs, fmt.Errorf("state %q: not a cluster of test/cluster: %w", c.State, err))
	}
	for name, text := range map[string]string{"image": c.Image, "sidecar": c.Sidecar, "records": c.Records} {
		if text == "" {
			errs = append(errs, fmt.Errorf("%s: must not be empty", name))
		}
	}
	if c.Out == nil {
		errs = append(errs, errors.New("out: not set"))
	}
	return errors.Join(errs...)
}

// long reports whether faults may last as long as the matrix of faults wants, and come more than once.
func (c Config) long() bool { return c.Duration >= 5*time.Minute }

// meetings are the names of those to be made.
func (c Config) meetings() []string {
	switch {
	case len(c.Meetings) > 0:
		return c.Meetings
	case c.long():
		return meetings.Names()
	default:
		return nil // they would double what the small dose of make test takes
	}
}

// lanes is how many meetings take place at a time.
func (c Config) lanes() int {
	if c.long() {
		return 2
	}
	return 1
}

// kills is how many daemons are killed at least: 240 in a run of an hour.
func (c Config) kills() int {
	const few, perMinute = 4, 4
	if c.long() {
		return int(perMinute * c.Duration.Minutes())
	}
	return few
}

// least is the load below which the run proves nothing: a third of what an idle machine does.
func (c Config) least() verdict.Least {
	requests := int(c.Duration.Seconds() * c.Rate / 3)
	least := verdict.Least{Requests: requests, Succeeded: requests / 2, Stops: requests / 3, Denied: 3, Followed: 4, Cancelled: 2, RolledOut: 1, Triggered: 1, SidecarUpdates: 6, Taken: 1, Updated: 8, Refused: 4, Faults: map[string]int{}}
	if c.Calm || len(c.Outages) > 0 {
		return verdict.Least{Requests: requests, Succeeded: requests / 2, Stops: requests / 3, Followed: 4, RolledOut: 1, Triggered: 1, SidecarUpdates: 6, Taken: 1, Updated: 8}
	}
	for _, kind := range []string{
		entry.KindRuntimeRestart, entry.KindAPIServerKill, entry.KindAbsent, records.KindAPIServerPause, records.KindEtcdPause,
		entry.KindKubeletRestart, entry.KindManagerKill, records.KindPodDelete, records.KindPodReplace, records.KindNamespaceDelete,
		entry.KindSidecarKill, entry.KindWatchedKill, entry.KindDiskFull, entry.KindSidecarLimit,
	} {
		least.Faults[kind] = 1
	}
	least.Faults[entry.KindCall], least.Faults[entry.KindDaemonKill] = 5, c.kills()
	if c.long() {
		least.Faults[entry.KindCall], least.Faults[entry.KindRuntimeRestart] = 12, 8
		least.Faults[entry.KindAPIServerStop], least.Faults[entry.KindCertificates], least.Faults[entry.KindSidecarNice] = 1, 1, 1
		least.Due, least.Taken, least.Followers = 2, 20, 3
	}
	return least
}
