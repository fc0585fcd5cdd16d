package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/test/chaos/history"
)

// runLabel marks what a run makes in the cluster.
const runLabel = "refit-chaos"

const (
	// drainTime is what the last requests may take once nothing is broken any more.
	drainTime = 2 * time.Minute
	// clearTime is for cleaning up after an interrupt.
	clearTime = 2 * time.Minute
	// patience of the judge with a request whose turn has come.
	patience = time.Minute
)

// run is one run.
type run struct {
	Config
	cluster *cluster
	journal *journal
	wires   []*tripwire

	auditFrom int64
	auditLock sync.Mutex
	onAudit   func(line []byte) bool

	sources      atomic.Uint64
	sent, unsent atomic.Int64
}

// record is the place of a record.
func (r *run) record(name string) string { return filepath.Join(r.Records, name) }

// Run makes a run and judges it. The error says that there was none to judge.
func Run(ctx context.Context, config Config) (history.Report, error) {
	if err := config.Validate(); err != nil {
		return history.Report{}, err
	}
	if err := errors.Join(os.RemoveAll(config.Records), os.MkdirAll(config.Records, 0o755)); err != nil {
		return history.Report{}, fmt.Errorf("empty folder of records: %w", err)
	}
	r := &run{Config: config}
	var err error
	if r.journal, err = openJournal(r.record("faults.jsonl"), config.Out); err != nil {
		return history.Report{}, err
	}
	defer func() { _ = r.journal.close() }()
	if r.cluster, err = openCluster(config.State); err != nil {
		return history.Report{}, err
	}
	log, err := os.Stat(r.cluster.auditLog())
	if err != nil {
		return history.Report{}, fmt.Errorf("find audit log: %w", err)
	}
	r.auditFrom = log.Size()
	if err := r.play(ctx); err != nil {
		return history.Report{}, err
	}
	records, err := ReadRecords(r.Records)
	if err != nil {
		return history.Report{}, err
	}
	r.journal.say("judging %d writes, %d calls and %d signals", len(records.Writes), len(records.Calls), len(records.Signals))
	return history.Check(records, options(config.least())), nil
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
	if err := r.proxies(inner, behind); err != nil {
		return err
	}
	if err := errors.Join(r.logs(), r.daemonBehindProxy(inner)); err != nil {
		return err
	}
	r.journal.say("daemon behind the CRI proxy")
	load, err := r.startLoad(inner)
	if err != nil {
		return err
	}
	turners, err := r.startTurns(inner)
	if err != nil {
		return err
	}
	turned, err := os.Create(r.record("turns.jsonl"))
	if err != nil {
		return fmt.Errorf("open record of turns: %w", err)
	}
	defer func() { err = errors.Join(err, turned.Close()) }()
	log := &turnLog{file: turned}
	if err := r.raiseGhost(inner); err != nil {
		return err
	}
	r.journal.say("%d pods; requests and faults for %s, seed %d", len(load), r.Duration, r.Seed)
	err = r.storm(inner,
		func(ctx context.Context) error { return r.load(ctx, load) },
		func(ctx context.Context) error { return r.turns(ctx, turners, log) })
	if err != nil {
		return err
	}
	r.journal.say("%d requests sent, %d could not be; waiting for the rest of them to end", r.sent.Load(), r.unsent.Load())
	if err := r.drain(inner, drainTime); err != nil && !errors.Is(err, errLate) {
		return err
	}
	if err := r.lastTurns(inner, turners, log); err != nil {
		return err
	}
	if err := r.last(inner); err != nil {
		return err
	}
	r.journal.say("pods without manager and daemon")
	return r.absent(inner)
}

// storm is the time of requests and faults. The lane of faults says when it is over.
func (r *run) storm(ctx context.Context, load ...func(context.Context) error) error {
	group, limited := errgroup.WithContext(ctx)
	for _, lane := range append(load, r.faults, r.churn, r.trespass, r.tail) {
		group.Go(func() error { return lane(limited) })
	}
	if err := group.Wait(); err != nil && !errors.Is(err, errOver) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Whatever was under way at the end is mended.
	_ = os.Remove(r.record(callFaultsFile))
	if err := r.cluster.serverAnswers(ctx); err != nil {
		return err
	}
	return until(ctx, "Refit is complete", rolloutTime, r.installed)
}
