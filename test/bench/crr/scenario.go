package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/crr/meter"
	"github.com/refit-project/refit/test/bench/crr/sight"
	"github.com/refit-project/refit/test/bench/crr/verdict"
)

const (
	// calm after pods were made, so that kubelet has nothing else to do.
	calm = 2 * time.Second
	// trialTimeout is longer than kubelet's longest back-off.
	trialTimeout = 6 * time.Minute
)

// bench runs scenarios one after the other and collects their results.
type bench struct {
	cluster *cluster
	meter   *meter.Meter
	pairs   int // of restarts, one at a time
	rounds  int // of each batch
	atOnce  []string
	say     func(format string, args ...any)
	results []verdict.Result
}

var obedient = podKind{grace: 30}

// one restarts one container at a time, in turns, both sides at the same places in kubelet's period.
func (b *bench) one(ctx context.Context) error {
	kind := obedient
	kind.name = "one"
	// The first pair warms up and is dropped.
	pods, err := b.cluster.makePods(ctx, kind, 2*(b.pairs+1))
	if err != nil {
		return err
	}
	if err := wait.For(ctx, calm); err != nil {
		return err
	}
	before, err := b.meter.Begin(ctx)
	if err != nil {
		return err
	}
	samples := make([]verdict.Sample, 0, len(pods))
	for i, pod := range pods {
		pair, who := i/2, turn(i)
		place := relistPeriod * time.Duration(2*pair+1) / time.Duration(2*(b.pairs+1))
		if err := b.cluster.align(ctx, place); err != nil {
			return err
		}
		batch, err := b.together(ctx, who, []*corev1.Pod{pod})
		if err != nil {
			return err
		}
		batch[0].Round = pair
		samples = append(samples, batch...)
	}
	spent, err := b.meter.End(ctx, before, len(pods)/2)
	if err != nil {
		return err
	}
	b.add(verdict.One(verdict.Result{Name: "one at a time", Samples: samples[2:], Cost: spent}))
	return b.cluster.deletePods(ctx, pods)
}

// turn alternates, A B A B.
func turn(i int) verdict.Side {
	if i%2 == 0 {
		return verdict.Ours
	}
	return verdict.Floor
}

// together restarts all the pods at once.
func (b *bench) together(ctx context.Context, who verdict.Side, pods []*corev1.Pod) ([]verdict.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	samples := make([]verdict.Sample, len(pods))
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	for i, pod := range pods {
		group.Go(func() (err error) {
			samples[i], err = b.cluster.restart(groupCtx, who, pod, b.requestName(pod), began)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, pod := range pods {
		var err error
		if samples[i].Exited, err = b.cluster.exited(ctx, pod, began); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// requestName is new for each instance of a container.
func (b *bench) requestName(pod *corev1.Pod) string {
	return fmt.Sprintf("%s-%s-%d", pod.Name, pod.UID[:8], app(pod).RestartCount)
}

// batch restarts count containers at once, in turns, fresh pods each time.
func (b *bench) batch(ctx context.Context, kind podKind, count int, judge func(verdict.Result) verdict.Result) error {
	before, err := b.meter.Begin(ctx)
	if err != nil {
		return err
	}
	r := verdict.Result{Name: kind.name, Work: map[verdict.Side]time.Duration{}}
	for i := range 2 * b.rounds {
		pods, err := b.cluster.makePods(ctx, kind, count)
		if err != nil {
			return err
		}
		batch, work, err := b.timed(ctx, turn(i), pods)
		if err != nil {
			return err
		}
		for j := range batch {
			batch[j].Round = i / 2
		}
		b.say("%s, %s: last after %.2f s", kind.name, turn(i), lastOf(batch).Seconds())
		r.Samples = append(r.Samples, batch...)
		r.Work[turn(i)] += work
		if err := b.cluster.deletePods(ctx, pods); err != nil {
			return err
		}
	}
	if r.Cost, err = b.meter.End(ctx, before, count*b.rounds); err != nil {
		return err
	}
	b.add(judge(r))
	return nil
}

// timed restarts all the pods at once, from a calm, and measures the work that makes, up to the calm after it.
func (b *bench) timed(ctx context.Context, who verdict.Side, pods []*corev1.Pod) ([]verdict.Sample, time.Duration, error) {
	if err := wait.For(ctx, calm); err != nil {
		return nil, 0, err
	}
	if err := b.cluster.align(ctx, 0); err != nil {
		return nil, 0, err
	}
	before, err := b.meter.ClusterCPU()
	if err != nil {
		return nil, 0, err
	}
	samples, err := b.together(ctx, who, pods)
	if err != nil {
		return nil, 0, err
	}
	if err := wait.For(ctx, calm); err != nil {
		return nil, 0, err
	}
	after, err := b.meter.ClusterCPU()
	return samples, after - before, err
}

func lastOf(samples []verdict.Sample) time.Duration {
	return slices.MaxFunc(samples, func(a, b verdict.Sample) int { return int(a.Done - b.Done) }).Done
}

// crowded restarts many at once.
func (b *bench) crowded(ctx context.Context) error {
	for _, size := range b.atOnce {
		count, err := strconv.Atoi(size)
		if err != nil {
			return fmt.Errorf("-at-once: %w", err)
		}
		kind := obedient
		kind.name = size + "-at-once"
		if err := b.batch(ctx, kind, count, verdict.Batch); err != nil {
			return err
		}
	}
	return nil
}

// ignorers restarts 40 containers at once that have to be killed.
func (b *bench) ignorers(ctx context.Context) error {
	kind := podKind{name: "40-ignore-term", args: []string{"--ignore-term"}, grace: int64(verdict.IgnorersGrace / time.Second)}
	return b.batch(ctx, kind, 40, verdict.Ignorers)
}

// row restarts one container several times, each time as soon as the last restart is known to be over.
func (b *bench) row(ctx context.Context, who verdict.Side) ([]verdict.Sample, error) {
	kind := obedient
	kind.name = "row-" + string(who)
	pods, err := b.cluster.makePods(ctx, kind, 1)
	if err != nil {
		return nil, err
	}
	pod := pods[0]
	var samples []verdict.Sample
	for i := range verdict.InARow {
		batch, err := b.together(ctx, who, []*corev1.Pod{pod})
		if err != nil {
			return nil, err
		}
		batch[0].Round = i
		samples = append(samples, batch...)
		old := app(pod).ContainerID
		seen, err := sight.Await(ctx, "pod "+pod.Name, b.cluster.pods.Expect(pod.Name, func(s sight.Sighting[*corev1.Pod]) bool {
			return s.Gone || app(s.Object).ContainerID != old && app(s.Object).Ready
		}))
		if err != nil {
			return nil, err
		}
		pod = seen.Object
	}
	return samples, b.cluster.deletePods(ctx, pods)
}
