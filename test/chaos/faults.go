package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/test/chaos/history"
	"github.com/refit-project/refit/test/criproxy"
)

// breather is the time between two faults.
const breather = time.Second

// faults happen one after the other until the time is over and each kind has happened.
func (r *run) faults(ctx context.Context) error {
	choice, begin := r.choices(), time.Now()
	pairs := 1 // of kills and CRI faults for each fault of another part
	breaks := []func(context.Context, *rand.Rand) error{
		r.runtimeRestart, r.serverPause, r.etcdPause, r.serverKill, r.kubeletRestart, r.managerKill,
	}
	if r.long() {
		pairs = 3
		breaks = append(breaks, r.serverStop)
	}
	var calls, kills, others deck
	for round := 0; round < len(breaks) || time.Since(begin) < r.Duration; round++ {
		for range pairs {
			p := points[kills.next(len(points), choice)]
			if err := r.step(ctx, func() error { return r.kill(ctx, p, choice) }); err != nil {
				return err
			}
			c := callFaults[calls.next(len(callFaults), choice)]
			if err := r.step(ctx, func() error { return r.spoil(ctx, c) }); err != nil {
				return err
			}
		}
		if err := r.step(ctx, func() error { return breaks[others.next(len(breaks), choice)](ctx, choice) }); err != nil {
			return err
		}
	}
	return errOver
}

// step makes one fault. A cluster that does not recover in time ends the run.
func (r *run) step(ctx context.Context, fault func() error) error {
	if err := fault(); err != nil {
		return err
	}
	return pause(ctx, breather)
}

// errOver is the end of the time for faults.
var errOver = errors.New("the time for faults is over")

// deck deals the numbers below n in a random order, and again.
type deck struct{ left []int }

func (d *deck) next(n int, choice *rand.Rand) int {
	if len(d.left) == 0 {
		d.left = choice.Perm(n)
	}
	number := d.left[0]
	d.left = d.left[1:]
	return number
}

func (r *run) node(choice *rand.Rand) string {
	return r.cluster.nodes[choice.IntN(len(r.cluster.nodes))]
}

// runtimeRestart restarts containerd every 5 s, for 40 s in a long run.
func (r *run) runtimeRestart(ctx context.Context, choice *rand.Rand) error {
	times := 2
	if r.long() {
		times = 8
	}
	const interval = 5 * time.Second
	node := r.node(choice)
	for n := range times {
		begin := time.Now()
		if err := r.runtimeRestartOnce(context.WithoutCancel(ctx), []string{"restart", "kill"}[n%2], node); err != nil {
			return err
		}
		if err := pause(ctx, interval-time.Since(begin)); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) runtimeRestartOnce(ctx context.Context, how, node string) error {
	begin := time.Now()
	if err := r.cluster.component(ctx, how, "containerd", node); err != nil {
		return err
	}
	if err := r.cluster.runtimeAnswers(ctx, node); err != nil {
		return err
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	return r.journal.fault(history.Fault{Kind: history.KindRuntimeRestart, Node: node, Detail: how, Begin: begin, Impedes: true})
}

func (r *run) serverPause(ctx context.Context, _ *rand.Rand) error {
	return r.suspend(ctx, "apiserver", kindAPIServerPause)
}

func (r *run) etcdPause(ctx context.Context, _ *rand.Rand) error {
	return r.suspend(ctx, "etcd", kindEtcdPause)
}

func (r *run) suspend(ctx context.Context, component, kind string) error {
	begin := time.Now()
	if err := r.cluster.component(ctx, "pause", component); err != nil {
		return err
	}
	_ = pause(ctx, r.outage())
	ctx = context.WithoutCancel(ctx)
	if err := r.cluster.component(ctx, "resume", component); err != nil {
		return err
	}
	return r.serverBack(ctx, kind, begin)
}

func (r *run) serverKill(ctx context.Context, _ *rand.Rand) error {
	begin := time.Now()
	ctx = context.WithoutCancel(ctx)
	if err := r.cluster.component(ctx, "kill", "apiserver"); err != nil {
		return err
	}
	return r.serverBack(ctx, history.KindAPIServerKill, begin)
}

// serverStop takes the API server away for longer.
func (r *run) serverStop(ctx context.Context, _ *rand.Rand) error {
	begin := time.Now()
	ctx = context.WithoutCancel(ctx)
	if err := r.cluster.component(ctx, "stop", "apiserver"); err != nil {
		return err
	}
	_ = pause(ctx, 3*r.outage())
	if err := r.cluster.component(ctx, "start", "apiserver"); err != nil {
		return err
	}
	return r.serverBack(ctx, kindAPIServerStop, begin)
}

// serverBack waits for the API server, and a little more for its clients to come back to it.
func (r *run) serverBack(ctx context.Context, kind string, begin time.Time) error {
	const clients = 3 * time.Second
	if err := r.cluster.serverAnswers(ctx); err != nil {
		return err
	}
	if err := pause(ctx, clients); err != nil {
		return err
	}
	return r.journal.fault(history.Fault{Kind: kind, Detail: "and its clients", Begin: begin, Impedes: true})
}

func (r *run) kubeletRestart(ctx context.Context, choice *rand.Rand) error {
	begin, node, ctx := time.Now(), r.node(choice), context.WithoutCancel(ctx)
	if err := r.cluster.component(ctx, "restart", "kubelet", node); err != nil {
		return err
	}
	if err := r.cluster.nodeReady(ctx, node, begin); err != nil {
		return err
	}
	return r.journal.fault(history.Fault{Kind: history.KindKubeletRestart, Node: node, Begin: begin, Impedes: true})
}

// callFault spoils the daemon's calls of one method.
type callFault struct {
	method string
	fault  criproxy.Fault
	spoil  func(*runtimeapi.ListContainersResponse)
	name   string
}

var callFaults = makeCallFaults()

func makeCallFaults() []callFault {
	half := 0.5
	kinds := []callFault{
		{name: "0.1 s late", fault: criproxy.Fault{Delay: criproxy.Duration(100 * time.Millisecond)}},
		{name: "1 s late", fault: criproxy.Fault{Delay: criproxy.Duration(time.Second)}},
		{name: "10 s late", fault: criproxy.Fault{Delay: criproxy.Duration(10 * time.Second)}},
		{name: "hangs", fault: criproxy.Fault{Hang: true}},
		{name: "Unavailable", fault: criproxy.Fault{Code: criproxy.Code(codes.Unavailable), Message: "chaos"}},
		{name: "DeadlineExceeded", fault: criproxy.Fault{Code: criproxy.Code(codes.DeadlineExceeded), Message: "chaos"}},
		{name: "NotFound", fault: criproxy.Fault{Code: criproxy.Code(codes.NotFound), Message: "chaos"}},
		{name: "ResourceExhausted", fault: criproxy.Fault{Code: criproxy.Code(codes.ResourceExhausted), Message: "chaos"}},
		{name: "answer lost", fault: criproxy.Fault{Code: criproxy.Code(codes.Unavailable), Message: "chaos", After: true, Probability: &half}},
	}
	var all []callFault
	for _, method := range []string{
		"ListContainers", "ContainerStatus", "StopContainer", "RemoveContainer", "ExecSync", "GetContainerEvents", "ListPodSandbox", "Version", "*",
	} {
		for _, kind := range kinds {
			kind.method = method
			all = append(all, kind)
		}
	}
	return append(all,
		callFault{method: "GetContainerEvents", name: "events lost", fault: criproxy.Fault{Drop: true, Probability: &half}},
		callFault{method: "ListContainers", name: "half is missing", spoil: func(list *runtimeapi.ListContainersResponse) {
			list.Containers = list.Containers[len(list.Containers)/2:]
		}},
		callFault{method: "ListContainers", name: "everything twice", spoil: func(list *runtimeapi.ListContainersResponse) {
			list.Containers = append(list.Containers, list.Containers...)
		}},
	)
}

// spoil lets calls go wrong for a while.
func (r *run) spoil(ctx context.Context, c callFault) error {
	length := 3 * time.Second
	if r.long() && (c.fault.Hang || time.Duration(c.fault.Delay) > time.Second) {
		length = 8 * time.Second
	}
	begin := time.Now()
	if c.spoil != nil {
		for _, wire := range r.wires {
			wire.spoilLists(c.spoil)
			defer wire.spoilLists(nil)
		}
	} else if err := r.writeCallFaults(map[string]criproxy.Fault{c.method: c.fault}); err != nil {
		return err
	}
	_ = pause(ctx, length)
	if c.spoil == nil {
		if err := os.Remove(r.record(callFaultsFile)); err != nil {
			return fmt.Errorf("end CRI faults: %w", err)
		}
	}
	return r.journal.fault(history.Fault{Kind: history.KindCall, Detail: c.method + " " + c.name, Begin: begin, Impedes: true})
}

const callFaultsFile = "cri-faults.json"

// writeCallFaults replaces the file at once: the proxies look at it before each call.
func (r *run) writeCallFaults(faults map[string]criproxy.Fault) error {
	content, err := json.Marshal(faults)
	if err != nil {
		return fmt.Errorf("write CRI faults: %w", err)
	}
	name := r.record(callFaultsFile)
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		return fmt.Errorf("write CRI faults: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write CRI faults: %w", err)
	}
	return nil
}
