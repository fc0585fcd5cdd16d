package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/crr/sight"
	"github.com/refit-project/refit/test/bench/crr/verdict"
)

const (
	// crashRestarts is how often the container in CrashLoopBackOff has been restarted, so that the next back-off
	// is 160 s.
	crashRestarts = 5
	// crashSetUp is longer than kubelet takes to that: 10, 20, 40 and 80 s, and the container's own life.
	crashSetUp = 5 * time.Minute
	idle       = 30 * time.Second
	// waiters are the pods of backoffs that wait while the node is filled up: two that crash and one in a row.
	waiters = 3
	// fresh is how recent an exit has to be, so that its back-off is not about to end.
	fresh = time.Minute
)

var crasher = podKind{name: "crash", args: []string{"--crash-after=2s", "--exit-code=1"}, grace: 30}

// backoffs runs what has to wait for minutes: five restarts in a row and a container in CrashLoopBackOff, with
// their floors, which wait for kubelet's back-off. In the meantime the node is filled up and the daemon's memory
// measured.
func (b *bench) backoffs(ctx context.Context) error {
	inRow := verdict.Result{Name: "5-in-a-row"}
	before, err := b.meter.Begin(ctx)
	if err != nil {
		return err
	}
	if inRow.Samples, err = b.row(ctx, verdict.Ours); err != nil {
		return err
	}
	if inRow.Cost, err = b.meter.End(ctx, before, verdict.InARow); err != nil {
		return err
	}
	pods, err := b.cluster.makePods(ctx, crasher, 2)
	if err != nil {
		return err
	}
	var rowFloor, crashFloor []verdict.Sample
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { rowFloor, err = b.row(groupCtx, verdict.Floor); return err })
	group.Go(func() (err error) { crashFloor, err = b.crashFloor(groupCtx, pods[1].Name); return err })
	memory, errMemory := b.full(groupCtx)
	crashed, errCrash := b.crash(groupCtx, pods[0].Name)
	if err := errors.Join(errMemory, errCrash, group.Wait()); err != nil {
		return err
	}
	inRow.Samples = append(inRow.Samples, rowFloor...)
	crashed.Samples = append(crashed.Samples, crashFloor...)
	b.add(verdict.Row(inRow))
	b.add(verdict.Crash(crashed))
	b.add(verdict.Memory(memory))
	return b.cluster.deletePods(ctx, pods)
}

// held waits for the pod's container to be held back by kubelet. Its status may not yet say CrashLoopBackOff then:
// kubelet 1.36 says so when it looks at the pod again, which may be at the end.
func (b *bench) held(ctx context.Context, name string) (sight.Sighting[*corev1.Pod], error) {
	return sight.Await(ctx, "CrashLoopBackOff of pod "+name, b.cluster.pods.Expect(name, func(s sight.Sighting[*corev1.Pod]) bool {
		status := app(s.Object)
		ended := status.State.Terminated
		if status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff" {
			ended = status.LastTerminationState.Terminated
		}
		return status.RestartCount >= crashRestarts && ended != nil && time.Since(ended.FinishedAt.Time) < fresh
	}))
}

// crash gets a container out of CrashLoopBackOff.
func (b *bench) crash(ctx context.Context, name string) (verdict.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, crashSetUp+trialTimeout)
	defer cancel()
	crashed := verdict.Result{Name: "crash-loop"}
	held, err := b.held(ctx, name)
	if err != nil {
		return crashed, err
	}
	if err := wait.For(ctx, calm); err != nil {
		return crashed, err
	}
	b.say("crashed after %d restarts", app(held.Object).RestartCount)
	before, err := b.meter.Begin(ctx)
	if err != nil {
		return crashed, err
	}
	if crashed.Samples, err = b.together(ctx, verdict.Ours, []*corev1.Pod{held.Object}); err != nil {
		return crashed, err
	}
	crashed.Cost, err = b.meter.End(ctx, before, 1)
	return crashed, err
}

// crashFloor waits for kubelet to do it.
func (b *bench) crashFloor(ctx context.Context, name string) ([]verdict.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, crashSetUp+trialTimeout)
	defer cancel()
	held, err := b.held(ctx, name)
	if err != nil {
		return nil, err
	}
	old := app(held.Object).ContainerID
	ready, err := sight.Await(ctx, "kubelet's back-off to end", b.cluster.pods.Expect(name, func(s sight.Sighting[*corev1.Pod]) bool {
		return app(s.Object).ContainerID != old && app(s.Object).Ready
	}))
	if err != nil {
		return nil, err
	}
	waited := ready.At.Sub(held.At)
	return []verdict.Sample{{Side: verdict.Floor, Ready: waited, Done: waited}}, nil
}

// full fills the node up and looks at the daemon's memory when it has been idle for a while.
func (b *bench) full(ctx context.Context) (verdict.Result, error) {
	filled := verdict.Result{Name: fmt.Sprintf("idle-%d-pods", verdict.PodsOfNode)}
	before, err := b.meter.Begin(ctx)
	if err != nil {
		return filled, err
	}
	others, err := b.cluster.others(ctx)
	if err != nil {
		return filled, err
	}
	kind := obedient
	kind.name = "idle"
	pods, err := b.cluster.makePods(ctx, kind, verdict.PodsOfNode-others-waiters)
	if err != nil {
		return filled, err
	}
	if err := wait.For(ctx, idle); err != nil {
		return filled, err
	}
	if filled.Cost, err = b.meter.End(ctx, before, 0); err != nil {
		return filled, err
	}
	return filled, b.cluster.deletePods(ctx, pods)
}
