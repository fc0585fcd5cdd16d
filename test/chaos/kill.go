package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/history"
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
	{name: "begin is written", words: []string{`"resource":"containerrecreaterequests"`, `"phase":"Recreating"`, `"verb":"patch"`}},
	{name: "end is written", words: []string{`"resource":"containerrecreaterequests"`, `"phase":"Completed"`, `"verb":"patch"`}},
	{name: "kubelet is woken", words: []string{`"resource":"pods"`, `"verb":"patch"`}},
	{name: "any moment"},
}

const (
	// reachTime is how long a point is waited for; after that any moment will do.
	reachTime = 8 * time.Second
	// settleTime is for a daemon that has just begun to fill its caches.
	settleTime = 2 * time.Second
	// reviveTime is how long kubelet may take to start the daemon again before the pod is replaced.
	reviveTime = 8 * time.Second
)

// kill kills a daemon at a point and waits until it is back.
func (r *run) kill(ctx context.Context, p point, choice *rand.Rand) error {
	wire := r.wires[choice.IntN(len(r.wires))]
	old, _ := wire.process()
	shot, name := r.aim(ctx, wire, p, choice), p.name
	select {
	case <-shot:
	case <-time.After(reachTime):
		name += " was not reached"
		wire.shoot()
	case <-ctx.Done():
		wire.disarm()
	}
	r.setAudited(nil)
	select {
	case <-shot:
	default: // the end of the run, or there is no daemon just now
		wire.disarm()
		return ctx.Err()
	}
	begin, ctx := time.Now(), context.WithoutCancel(ctx) // what has begun is seen to its end, and written down
	how, err := r.revive(ctx, wire, old)
	if err != nil {
		return err
	}
	_, since := wire.process()
	back := since.Sub(begin)
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	return r.journal.fault(history.Fault{Kind: kindKill, Node: wire.node, Detail: fmt.Sprintf("%s, %s in %.1f s", name, how, back.Seconds()), Begin: begin, Impedes: true})
}

// aim makes the point shoot.
func (r *run) aim(ctx context.Context, wire *tripwire, p point, choice *rand.Rand) <-chan struct{} {
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
		r.setAudited(func(line []byte) bool {
			for _, word := range words {
				if !bytes.Contains(line, []byte(word)) {
					return false
				}
			}
			wire.shoot()
			return true
		})
	case p.method == "":
		_ = pause(ctx, time.Duration(choice.Int64N(int64(2*time.Second))))
		wire.shoot()
	}
	return shot
}

// revive waits for the next daemon. Kubelet starts it at once the first time and backs off after that, so then the
// pod is replaced, as an operator would.
func (r *run) revive(ctx context.Context, wire *tripwire, old int) (how string, err error) {
	back := func(context.Context) bool {
		pid, _ := wire.process()
		return pid != old && isDaemon(pid)
	}
	pods, err := r.systemPods(ctx, daemonName)
	fresh := err == nil
	for _, pod := range pods {
		if pod.Spec.NodeName == wire.node && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount > 0 {
			fresh = false
		}
	}
	if fresh {
		if err := until(ctx, "daemon is back", reviveTime, back); !errors.Is(err, errLate) {
			return "restarted", err
		}
	}
	return "replaced", until(ctx, "new daemon", rolloutTime, func(ctx context.Context) bool {
		if back(ctx) {
			return true
		}
		r.replaceDaemon(ctx, wire.node)
		return false
	})
}

// replaceDaemon deletes a daemon's pod whose container has ended. That it may fail just now is no matter: it is done
// again.
func (r *run) replaceDaemon(ctx context.Context, node string) {
	pods, err := r.systemPods(ctx, daemonName)
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
			_ = r.cluster.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}
	}
}

// tail follows the audit log and shows each line to whoever waits for one.
func (r *run) tail(ctx context.Context) error {
	const interval = 10 * time.Millisecond
	log, err := openTail(r.cluster.auditLog(), r.auditFrom)
	if err != nil {
		return err
	}
	defer log.close()
	for {
		line, err := log.next()
		if err != nil {
			return err
		}
		if line == nil {
			if pause(ctx, interval) != nil {
				return nil
			}
			continue
		}
		if audited := r.audited(); audited != nil && audited(line) {
			r.setAudited(nil)
		}
	}
}

func (r *run) audited() func([]byte) bool {
	r.auditLock.Lock()
	defer r.auditLock.Unlock()
	return r.onAudit
}

func (r *run) setAudited(f func([]byte) bool) {
	r.auditLock.Lock()
	defer r.auditLock.Unlock()
	r.onAudit = f
}

// podNamed is an object to delete or get by.
func podNamed(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, name
	return pod
}
