package daemonfault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/criproxy"
)

// point is a moment at which the daemon is killed. It is seen either by a proxy or in the audit log.
type point struct {
	name   string
	method string
	// answered: the runtime has answered and the daemon does not know yet; else the call has not been passed on.
	answered bool
	// within: the call is passed on, and the daemon is killed at some moment this long after it.
	within time.Duration
	// words of an audit line of the daemon's.
	words []string
}

var points = []point{
	{name: "stop has come", method: "StopContainer"},
	{name: "stop is under way", method: "StopContainer", within: 900 * time.Millisecond},
	{name: "stop is answered", method: "StopContainer", answered: true},
	{name: "hook has come", method: "ExecSync"},
	{name: "hook is under way", method: "ExecSync", within: 600 * time.Millisecond},
	{name: "remove has come", method: "RemoveContainer"},
	{name: "remove is answered", method: "RemoveContainer", answered: true},
	{name: "list has come", method: "ListContainers"},
	{name: "status is answered", method: "ContainerStatus", answered: true},
	{name: "pull has come", method: entry.MethodPull},
	{name: "pull is under way", method: entry.MethodPull, within: 100 * time.Millisecond},
	{name: "pull is answered", method: entry.MethodPull, answered: true},
	{name: "begin is written", words: []string{`"resource":"containerrecreaterequests"`, `"phase":"Recreating"`, `"verb":"patch"`}},
	{name: "end is written", words: []string{`"resource":"containerrecreaterequests"`, `"phase":"Completed"`, `"verb":"patch"`}},
	{name: "kubelet is woken", words: []string{`"resource":"pods"`, `"verb":"patch"`}},
	{name: "any moment"},
}

// Points is the number of points.
func (d *Daemons) Points() int { return len(points) }

const (
	// reachTime is how long a point is waited for; after that any moment will do.
	reachTime = 8 * time.Second
	// settleTime is for a daemon that has just begun to fill its caches.
	settleTime = 2 * time.Second
	// reviveTime is how long kubelet may take to start the daemon again before the pod is replaced.
	reviveTime = 8 * time.Second
)

// Kills is how many daemons have been killed. It is called by the goroutine that calls Kill.
func (d *Daemons) Kills() int { return d.kills }

// Kill kills a daemon at point n and waits until it is back.
func (d *Daemons) Kill(ctx context.Context, n int, choice *rand.Rand) error {
	p := points[n]
	wire := d.wires[choice.IntN(len(d.wires))]
	old, _ := wire.process()
	shot, name := d.aim(ctx, wire, p, choice), p.name
	select {
	case <-shot:
	case <-time.After(reachTime):
		name += " was not reached"
		wire.shoot()
	case <-ctx.Done():
		wire.disarm()
	}
	d.setAudited(nil)
	select {
	case <-shot:
	default: // the end of the run, or there is no daemon just now
		wire.disarm()
		return ctx.Err()
	}
	begin, ctx := time.Now(), context.WithoutCancel(ctx) // what has begun is seen to its end, and written down
	how, err := d.revive(ctx, wire, old)
	if err != nil {
		return err
	}
	_, since := wire.process()
	back := since.Sub(begin)
	if err := cluster.Pause(ctx, settleTime); err != nil {
		return err
	}
	d.kills++
	return d.journal.Fault(entry.Fault{Kind: entry.KindDaemonKill, Node: wire.node, Detail: fmt.Sprintf("%s, %s in %.1f s", name, how, back.Seconds()), Begin: begin, Impedes: true})
}

// aim makes the point shoot.
func (d *Daemons) aim(ctx context.Context, wire *tripwire, p point, choice *rand.Rand) <-chan struct{} {
	delay := time.Duration(0)
	if p.within > 0 {
		delay = 10*time.Millisecond + time.Duration(choice.Int64N(int64(p.within)))
	}
	shot := wire.arm(func(call criproxy.Line, answered bool) (time.Duration, bool) {
		return delay, p.method != "" && call.Method == p.method && answered == p.answered
	})
	switch {
	case len(p.words) > 0:
		words := append([]string{`refit-daemon"`, `["` + wire.node + `"]`}, p.words...)
		d.setAudited(func(line []byte) bool {
			for _, word := range words {
				if !bytes.Contains(line, []byte(word)) {
					return false
				}
			}
			wire.shoot()
			return true
		})
	case p.method == "":
		_ = cluster.Pause(ctx, time.Duration(choice.Int64N(int64(2*time.Second))))
		wire.shoot()
	}
	return shot
}

// revive waits for the next daemon. Kubelet starts it at once the first time and backs off after that, so then the
// pod is replaced, as an operator would.
func (d *Daemons) revive(ctx context.Context, wire *tripwire, old int) (how string, err error) {
	back := func(context.Context) bool {
		pid, _ := wire.process()
		return pid != old && isDaemon(pid)
	}
	pods, err := d.cluster.SystemPods(ctx, cluster.DaemonName)
	fresh := err == nil
	for _, pod := range pods {
		if pod.Spec.NodeName == wire.node && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 0 {
			fresh = false
		}
	}
	if fresh {
		if err := cluster.Until(ctx, "daemon is back", reviveTime, back); !errors.Is(err, cluster.ErrLate) {
			return "restarted", err
		}
	}
	return "replaced", cluster.Until(ctx, "new daemon", cluster.RolloutTime, func(ctx context.Context) bool {
		if back(ctx) {
			return true
		}
		d.replaceDaemon(ctx, wire.node)
		return false
	})
}

// replaceDaemon deletes a daemon's pod whose container has ended. That it may fail just now is no matter: it is done
// again.
func (d *Daemons) replaceDaemon(ctx context.Context, node string) {
	pods, err := d.cluster.SystemPods(ctx, cluster.DaemonName)
	if err != nil {
		return
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != node || len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		status := pod.Status.ContainerStatuses[0]
		if status.State.Terminated != nil || status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff" {
			_ = d.cluster.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}
	}
}
