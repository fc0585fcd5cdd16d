package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/report"
)

const (
	// calm after pods were made and before something is measured.
	calm = 10 * time.Second
	// flipWindow is how long one pod's state is turned each second.
	flipWindow = 20 * time.Second
	// latenessTarget is of the 99th percentile; cpuTarget is of the daemon over kubelet.
	latenessTarget = 100 * time.Millisecond
	cpuTarget      = 1.0
)

// handlers by kind; the servers are in the container app of each pod, the command runs in the container probed.
var handlers = map[string]*corev1.ProbeHandler{
	"http": {HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
	"tcp":  {TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7000)}},
	"grpc": {GRPC: &corev1.GRPCAction{Port: 9000}},
	"exec": {Exec: &corev1.ExecAction{Command: []string{"/testapp", "state", "/absent"}}},
}

// scenario is so many probes of a kind.
type scenario struct {
	kind   string
	count  int
	period time.Duration
}

func (s scenario) String() string { return fmt.Sprintf("%s-%d-%s", s.kind, s.count, s.period) }

// probe is one of a pod's. Of http the first alone asks for the pod's state, which can be turned.
func (s scenario) probe(i int) corev1.Probe {
	handler := *handlers[s.kind].DeepCopy()
	if handler.HTTPGet != nil && i == 0 {
		handler.HTTPGet.Path = "/state"
	}
	return corev1.Probe{ProbeHandler: handler, PeriodSeconds: int32(s.period / time.Second), TimeoutSeconds: 10}
}

// bench runs scenarios one after the other and collects their results.
type bench struct {
	cluster *cluster
	config  config
	say     func(format string, args ...any)
	results []result
	notes   []string
}

func (b *bench) run(ctx context.Context, kept *findings) error {
	if err := b.cluster.setUp(ctx, kept); err != nil {
		return err
	}
	for _, count := range b.config.counts {
		if err := b.ours(ctx, count); err != nil {
			return fmt.Errorf("%d probes: %w", count, err)
		}
		for i := range b.results {
			r := &b.results[i]
			if r.scenario.count != count || !slices.Contains(b.config.floor, r.Name) {
				continue
			}
			if err := b.floor(ctx, r); err != nil {
				return fmt.Errorf("%s by kubelet: %w", r.Name, err)
			}
		}
	}
	if b.config.overload > 0 {
		found, err := b.overloaded(ctx, b.config.overload)
		if err != nil {
			return fmt.Errorf("overload: %w", err)
		}
		kept.Overload = found
	}
	return nil
}

func (b *bench) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.notes = append(b.notes, text)
	b.say("%s", text)
}

// ours runs all kinds and periods with as many probes, on the same pods.
func (b *bench) ours(ctx context.Context, count int) error {
	pods := count / b.config.perPod()
	b.say("%d pods of %d containers, without probes ...", pods, containers+1)
	if err := b.cluster.makePods(ctx, pods, nil); err != nil {
		return err
	}
	if err := wait.For(ctx, calm); err != nil {
		return err
	}
	idle, err := b.measure(ctx, b.config.window)
	if err != nil {
		return err
	}
	for _, kind := range b.config.kinds {
		for _, period := range b.config.periods {
			s := scenario{kind, count, period}
			rate := float64(count) / period.Seconds()
			if kind == "exec" && rate > b.config.execRate {
				b.note("%s left out: %.0f execs a second, -exec-rate is %.0f", s, rate, b.config.execRate)
				continue
			}
			if err := b.one(ctx, s, idle); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
	}
	// Once more, as kubelet is busy with new pods for a while.
	later, err := b.measure(ctx, b.config.window)
	if err != nil {
		return err
	}
	b.rest(count, idle, later)
	return b.cluster.deletePods(ctx)
}

// rest says what daemon, kubelet and runtime use with so many containers and without probes of their own. kubelet has
// none in the windows of ours either; what it uses there and afterwards tells how far its use varies by itself.
func (b *bench) rest(count int, before, after sample) {
	quiet := []float64{after.Kubelet}
	for _, r := range b.results {
		if r.scenario.count == count {
			quiet = append(quiet, r.Ours.Kubelet)
		}
	}
	slices.Sort(quiet)
	for i := range b.results {
		if r := &b.results[i]; r.scenario.count == count {
			r.Idle.Daemon, r.Idle.Runtime = min(before.Daemon, after.Daemon), min(before.Runtime, after.Runtime)
			r.Idle.Kubelet, r.Noise = quiet[len(quiet)/2], quiet[len(quiet)-1]-quiet[0]
		}
	}
}

// one measures a scenario of ours.
func (b *bench) one(ctx context.Context, s scenario, idle sample) error {
	if err := b.cluster.mark(ctx, s, b.config.perPod()); err != nil {
		return err
	}
	if err := wait.For(ctx, min(s.period, calm)); err != nil {
		return err
	}
	found, err := b.measure(ctx, max(b.config.window, 2*s.period))
	if err != nil {
		return err
	}
	r := result{Name: s.String(), scenario: s, Idle: idle, Ours: found}
	if s.kind == "http" && s.period == time.Second && s.count == b.config.flipsOver {
		if r.Flips, err = b.flips(ctx); err != nil {
			return err
		}
	}
	b.results = append(b.results, r)
	b.say("%s: daemon %s, runtime %s of CPU, late p50 %s p99 %s, %.1f writes/min", s, share(found.Daemon), share(found.Runtime-idle.Runtime),
		report.Duration(found.LateP50), report.Duration(found.LateP99), found.DaemonWrites)
	return b.cluster.unmark(ctx, s)
}

// flips turns what one probe says each second.
func (b *bench) flips(ctx context.Context) (*sample, error) {
	turning, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- b.cluster.turnPods(turning) }()
	found, err := b.measure(ctx, flipWindow)
	stop()
	if turned := <-done; err == nil {
		err = turned
	}
	return &found, err
}

// floor has kubelet do the same as readiness probes, one of each container, while the daemon does it too: on a machine
// whose speed changes from one minute to the next only the same minutes can be compared.
func (b *bench) floor(ctx context.Context, r *result) error {
	b.say("%s by kubelet as well: the same pods with readiness probes ...", r.Name)
	if err := b.cluster.makePods(ctx, r.scenario.count/containers, &r.scenario); err != nil {
		return err
	}
	if err := b.cluster.mark(ctx, r.scenario, containers); err != nil {
		return err
	}
	if err := wait.For(ctx, calm); err != nil {
		return err
	}
	found, err := b.measure(ctx, max(b.config.window, 2*r.scenario.period))
	if err != nil {
		return err
	}
	r.Both = &found
	b.say("%s by both: kubelet %s of CPU above %s without probes, daemon %s", r.Name,
		share(found.Kubelet-r.Idle.Kubelet), share(r.Idle.Kubelet), share(found.Daemon-r.Idle.Daemon))
	if err := b.cluster.unmark(ctx, r.scenario); err != nil {
		return err
	}
	return b.cluster.deletePods(ctx)
}
