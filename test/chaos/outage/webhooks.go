package outage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// managersPause suspends every manager, so that the API server waits for the webhooks until it gives up.
func (o *Outages) managersPause(ctx context.Context, _ *rand.Rand) error {
	ctx = context.WithoutCancel(ctx)
	pids, err := o.managers(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := suspend(pids, syscall.Kill); err != nil {
		return err
	}
	_ = cluster.Pause(ctx, o.outage())
	if err := resume(pids, syscall.Kill); err != nil {
		return err
	}
	if err := cluster.Until(ctx, "the managers to be back", cluster.RolloutTime, o.cluster.Installed); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindManagerAway, Detail: "suspended", Begin: begin, Impedes: true})
}

// webhooksSlow suspends every manager for most of each second: its webhooks answer, later than usual.
func (o *Outages) webhooksSlow(ctx context.Context, _ *rand.Rand) error {
	const stopped, runs = 700 * time.Millisecond, 300 * time.Millisecond
	ctx = context.WithoutCancel(ctx)
	pids, err := o.managers(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	for time.Since(begin) < 2*o.outage() {
		if err := suspend(pids, syscall.Kill); err != nil {
			return err
		}
		_ = cluster.Pause(ctx, stopped)
		if err := resume(pids, syscall.Kill); err != nil {
			return err
		}
		_ = cluster.Pause(ctx, runs)
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindSlowWebhook, Detail: fmt.Sprintf("suspended for %s of each second", stopped), Begin: begin, Impedes: true})
}

// managers are the processes of all managers.
func (o *Outages) managers(ctx context.Context) ([]int, error) {
	pods, err := o.cluster.SystemPods(ctx, cluster.ManagerName)
	if err != nil {
		return nil, fmt.Errorf("find managers: %w", err)
	}
	var pids []int
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			continue
		}
		pid, err := cluster.Process(string(pods[i].UID), cluster.ManagerName)
		if err != nil {
			return nil, fmt.Errorf("find process of %s: %w", pods[i].Name, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// suspend suspends all of the processes, or none.
func suspend(pids []int, signal func(int, syscall.Signal) error) error {
	if err := signalEach(pids, syscall.SIGSTOP, signal); err != nil {
		return errors.Join(fmt.Errorf("suspend managers: %w", err), resume(pids, signal))
	}
	return nil
}

// resume lets each process go on, whatever became of the others.
func resume(pids []int, signal func(int, syscall.Signal) error) error {
	if err := signalEach(pids, syscall.SIGCONT, signal); err != nil {
		return fmt.Errorf("let managers go on: %w", err)
	}
	return nil
}

// signalEach signals all of the processes. One that has ended, as kubelet may have replaced it meanwhile, is no error.
func signalEach(pids []int, s syscall.Signal, signal func(int, syscall.Signal) error) error {
	var errs []error
	for _, pid := range pids {
		if err := signal(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
		}
	}
	return errors.Join(errs...)
}
