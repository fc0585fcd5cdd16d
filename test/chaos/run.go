package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/daemonfault"
	"github.com/refit-project/refit/test/chaos/history"
	"github.com/refit-project/refit/test/chaos/history/verdict"
	"github.com/refit-project/refit/test/chaos/load"
	"github.com/refit-project/refit/test/chaos/meetings"
	"github.com/refit-project/refit/test/chaos/records"
	"github.com/refit-project/refit/test/chaos/updates"
)

const (
	// drainTime is what the last requests may take once nothing is broken any more. It exceeds the judge's patience with rollouts,
	// so that one that does not end is seen.
	drainTime = 4 * time.Minute
	// clearTime is for cleaning up after an interrupt.
	clearTime = 2 * time.Minute
	// patience of the judge with a request whose turn has come.
	patience = time.Minute
)

// run is one run.
type run struct {
	Config
	cluster  *cluster.Cluster
	journal  *records.Journal
	daemons  *daemonfault.Daemons
	requests *load.Requests

	restoreCRDs func(context.Context) error // nil while they are as they were

	auditFrom int64
	sources   atomic.Uint64
}

// record is the place of a record.
func (r *run) record(name string) string { return filepath.Join(r.Records, name) }

// choices are a source of choices of its own for each goroutine that needs one.
func (r *run) choices() *rand.Rand { return rand.New(rand.NewPCG(r.Seed, r.sources.Add(1))) }

// Run makes a run and judges it. The error says that there was none to judge.
func Run(ctx context.Context, config Config) (verdict.Report, error) {
	if err := config.Validate(); err != nil {
		return verdict.Report{}, err
	}
	if err := errors.Join(os.RemoveAll(config.Records), os.MkdirAll(config.Records, 0o755)); err != nil {
		return verdict.Report{}, fmt.Errorf("empty folder of records: %w", err)
	}
	r := &run{Config: config}
	var err error
	if r.journal, err = records.OpenJournal(r.record("faults.jsonl"), config.Out); err != nil {
		return verdict.Report{}, err
	}
	defer func() { _ = r.journal.Close() }()
	if r.cluster, err = cluster.Open(config.State, config.Image); err != nil {
		return verdict.Report{}, err
	}
	log, err := os.Stat(r.cluster.AuditLog())
	if err != nil {
		return verdict.Report{}, fmt.Errorf("find audit log: %w", err)
	}
	r.auditFrom = log.Size()
	r.daemons = daemonfault.New(r.cluster, r.journal, r.Records, r.long())
	r.requests = load.NewRequests(r.cluster, r.choices)
	if err := r.play(ctx); err != nil {
		return verdict.Report{}, err
	}
	found, err := records.Read(r.Records)
	if err != nil {
		return verdict.Report{}, err
	}
	r.journal.Say("judging %d writes, %d calls and %d signals", len(found.Writes), len(found.Calls), len(found.Signals))
	return history.Check(found, options(config.least())), nil
}

// play sets the stage, breaks things, lets the rest of the requests end, and takes everything away again. The proxies
// outlive all else but the cleaning up.
func (r *run) play(ctx context.Context) (err error) {
	inner, stop := context.WithCancel(ctx)
	behind, inner := errgroup.WithContext(inner)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
		defer cancel()
		err = errors.Join(err, r.keepLogs(), r.clear(ctx))
		stop()
		err = errors.Join(err, behind.Wait())
	}()
	if err := r.daemons.StartProxies(inner, behind); err != nil {
		return err
	}
	if err := errors.Join(r.logs(), r.daemons.UseProxies(inner)); err != nil {
		return err
	}
	r.journal.Say("daemon behind the CRI proxy")
	if r.KruiseCRDs {
		if r.restoreCRDs, err = r.cluster.PruneCRDs(inner); err != nil {
			return err
		}
		r.journal.Say("CRDs without the fields that OpenKruise's lack")
	}
	behind.Go(func() error { return r.watchServices(inner) })
	turns, err := load.StartTurns(inner, r.cluster, r.journal, r.choices, r.record("turns.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turns.Close()) }()
	works, err := r.start(inner)
	if err != nil {
		return err
	}
	r.journal.Say("%d pods; requests and faults for %s, seed %d", r.Pods, r.Duration, r.Seed)
	if err := r.storm(inner, append(works.lanes, turns.Run)...); err != nil {
		return err
	}
	sent, unsent := r.requests.Sent()
	r.journal.Say("%d requests sent, %d could not be; waiting for the rest of them to end", sent, unsent)
	if err := works.meetings.Last(inner); err != nil {
		return err
	}
	if err := errors.Join(works.rollouts.Last(inner), works.sets.Last(inner), works.changes.Last(inner)); err != nil {
		return err
	}
	if err := r.requests.Drain(inner, drainTime); err != nil && !errors.Is(err, cluster.ErrLate) {
		return err
	}
	if err := turns.Last(inner); err != nil {
		return err
	}
	if err := r.requests.Touch(inner); err != nil {
		return err
	}
	r.journal.Say("pods without manager and daemon")
	return r.absent(inner)
}

// works is what Refit is asked to do meanwhile.
type works struct {
	rollouts *load.Rollouts
	sets     *load.SidecarSets
	changes  *load.Changes
	meetings *meetings.Meetings
	lanes    []func(context.Context) error
}

// start makes the pods that are worked on.
func (r *run) start(ctx context.Context) (w works, err error) {
	pods, err := r.requests.StartPods(ctx, r.Pods)
	if err != nil {
		return w, err
	}
	sidecars := updates.New(r.cluster, r.journal, r.Sidecar, r.choices(), r.Calm)
	if err := sidecars.Start(ctx); err != nil {
		return w, err
	}
	if w.rollouts, err = load.StartRollouts(ctx, r.cluster, r.journal, r.choices()); err != nil {
		return w, err
	}
	if w.sets, err = load.StartSidecarSets(ctx, r.cluster, r.journal, r.choices(), r.Calm); err != nil {
		return w, err
	}
	if w.changes, err = load.StartChanges(ctx, r.cluster, r.choices()); err != nil {
		return w, err
	}
	w.meetings = meetings.New(r.cluster, r.journal, r.choices, r.Records)
	w.lanes = []func(context.Context) error{
		func(ctx context.Context) error { return r.requests.Run(ctx, pods, r.Rate) },
		w.rollouts.Run, w.sets.Run, w.changes.Run, sidecars.Run,
		func(ctx context.Context) error { return r.faults(ctx, sidecars) },
		func(ctx context.Context) error { return load.Pulls(ctx, r.cluster, r.choices()) },
		func(ctx context.Context) error { return load.PullsOfWhatIsThere(ctx, r.cluster) },
		func(ctx context.Context) error { return w.meetings.Run(ctx, r.meetings(), r.lanes()) },
		func(ctx context.Context) error { return r.daemons.FollowAudit(ctx, r.auditFrom) },
	}
	return w, r.raiseGhost(ctx)
}

// storm is the time of requests and faults. The lane of faults says when it is over.
func (r *run) storm(ctx context.Context, lanes ...func(context.Context) error) error {
	group, limited := errgroup.WithContext(ctx)
	for _, lane := range append(lanes, r.churn, r.trespass, r.sample, r.linkLogs) {
		group.Go(func() error { return lane(limited) })
	}
	if err := group.Wait(); err != nil && !errors.Is(err, errOver) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Whatever was under way at the end is mended.
	if err := r.daemons.EndCalls(); err != nil {
		return err
	}
	if err := r.cluster.ServerAnswers(ctx); err != nil {
		return err
	}
	return cluster.Until(ctx, "Refit is complete", cluster.RolloutTime, r.cluster.Installed)
}
