// Package outage causes outages of the parts of a cluster: containerd, kubelet, the API server, etcd, and the manager
// of Refit. Each outage ends, and is written down, before its function returns.
package outage

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

// Outages causes outages of one cluster.
type Outages struct {
	cluster *cluster.Cluster
	journal *records.Journal
	long    bool
}

// New returns the Outages of a cluster. In a long run they last longer.
func New(c *cluster.Cluster, journal *records.Journal, long bool) *Outages {
	return &Outages{cluster: c, journal: journal, long: long}
}

// Outage is one kind. Do returns when it is over.
type Outage struct {
	Name string
	Do   func(context.Context, *rand.Rand) error
	// Asked outages are made only where they are asked for by name.
	Asked bool
}

// All are the outages of a run.
func (o *Outages) All() []Outage {
	all := []Outage{
		{Name: "containerd", Do: o.runtimeRestart},
		{Name: "apiserver-pause", Do: o.serverPause},
		{Name: "etcd-pause", Do: o.etcdPause},
		{Name: "apiserver-kill", Do: o.serverKill},
		{Name: "kubelet", Do: o.kubeletRestart},
		{Name: "manager-kill", Do: o.managerKill},
	}
	if o.long {
		all = append(all,
			Outage{Name: "apiserver-stop", Do: o.serverStop},
			Outage{Name: "certificates-replaced", Do: o.certificatesReplaced},
			Outage{Name: "manager-pause", Do: o.managerPause},
			Outage{Name: "second-manager", Do: o.secondManager},
			Outage{Name: "webhook-slow", Do: o.webhooksSlow},
			Outage{Name: "apiserver-hangs", Do: o.serverHangs, Asked: true},
			Outage{Name: "apiserver-away", Do: o.serverAway, Asked: true},
			Outage{Name: "certificate-expired", Do: o.certificateExpired, Asked: true},
			Outage{Name: "managers-pause", Do: o.managersPause, Asked: true},
			Outage{Name: "node-anew", Do: o.nodeAnew, Asked: true},
			Outage{Name: "node-lost", Do: o.nodeLost, Asked: true},
			Outage{Name: "disk-full", Do: o.diskFull, Asked: true},
			Outage{Name: "throttle", Do: o.throttle, Asked: true},
			Outage{Name: "large-pods", Do: o.largePodsAppear, Asked: true})
	}
	return all
}

// outage is how long a part of the control plane is away.
func (o *Outages) outage() time.Duration {
	if o.long {
		return 10 * time.Second
	}
	return 3 * time.Second
}

func (o *Outages) node(choice *rand.Rand) string {
	return o.cluster.Nodes[choice.IntN(len(o.cluster.Nodes))]
}

// runtimeRestart restarts containerd every 5 s, for 40 s in a long run.
func (o *Outages) runtimeRestart(ctx context.Context, choice *rand.Rand) error {
	times := 2
	if o.long {
		times = 8
	}
	const interval = 5 * time.Second
	node := o.node(choice)
	for n := range times {
		begin := time.Now()
		if err := o.runtimeRestartOnce(context.WithoutCancel(ctx), []string{"restart", "kill"}[n%2], node); err != nil {
			return err
		}
		if err := cluster.Pause(ctx, interval-time.Since(begin)); err != nil {
			return err
		}
	}
	return nil
}

func (o *Outages) runtimeRestartOnce(ctx context.Context, how, node string) error {
	begin := time.Now()
	if err := o.cluster.Component(ctx, how, "containerd", node); err != nil {
		return err
	}
	if err := o.cluster.RuntimeAnswers(ctx, node); err != nil {
		return err
	}
	if err := cluster.Pause(ctx, time.Second); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindRuntimeRestart, Node: node, Detail: how, Begin: begin, Impedes: true})
}

func (o *Outages) serverPause(ctx context.Context, _ *rand.Rand) error {
	return o.suspend(ctx, "apiserver", records.KindAPIServerPause, o.outage())
}

// serverHangs suspends the API server for longer than clients wait for an answer.
func (o *Outages) serverHangs(ctx context.Context, _ *rand.Rand) error {
	return o.suspend(ctx, "apiserver", records.KindAPIServerPause, time.Minute)
}

func (o *Outages) etcdPause(ctx context.Context, _ *rand.Rand) error {
	return o.suspend(ctx, "etcd", records.KindEtcdPause, o.outage())
}

func (o *Outages) suspend(ctx context.Context, component, kind string, length time.Duration) error {
	begin := time.Now()
	if err := o.cluster.Component(ctx, "pause", component); err != nil {
		return err
	}
	_ = cluster.Pause(ctx, length)
	ctx = context.WithoutCancel(ctx)
	if err := o.cluster.Component(ctx, "resume", component); err != nil {
		return err
	}
	return o.serverBack(ctx, kind, begin)
}

func (o *Outages) serverKill(ctx context.Context, _ *rand.Rand) error {
	begin := time.Now()
	ctx = context.WithoutCancel(ctx)
	if err := o.cluster.Component(ctx, "kill", "apiserver"); err != nil {
		return err
	}
	return o.serverBack(ctx, entry.KindAPIServerKill, begin)
}

// serverStop takes the API server away for longer.
func (o *Outages) serverStop(ctx context.Context, _ *rand.Rand) error {
	return o.stopServer(ctx, 3*o.outage())
}

// serverAway takes it away for longer than leases last, also the leases of nodes.
func (o *Outages) serverAway(ctx context.Context, _ *rand.Rand) error {
	return o.stopServer(ctx, 5*time.Minute)
}

func (o *Outages) stopServer(ctx context.Context, length time.Duration) error {
	begin := time.Now()
	if err := o.cluster.Component(ctx, "stop", "apiserver"); err != nil {
		return err
	}
	_ = cluster.Pause(ctx, length)
	ctx = context.WithoutCancel(ctx)
	if err := o.cluster.Component(ctx, "start", "apiserver"); err != nil {
		return err
	}
	return o.serverBack(ctx, entry.KindAPIServerStop, begin)
}

// serverBack waits for the API server, and a little more for its clients to come back to it.
func (o *Outages) serverBack(ctx context.Context, kind string, begin time.Time) error {
	const clients = 3 * time.Second
	if err := o.cluster.ServerAnswers(ctx); err != nil {
		return err
	}
	if err := o.cluster.ServiceAnswers(ctx); err != nil {
		return err
	}
	if err := o.cluster.WebhooksAnswer(ctx); err != nil {
		return err
	}
	if err := cluster.Pause(ctx, clients); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: kind, Detail: "and its clients", Begin: begin, Impedes: true})
}

func (o *Outages) kubeletRestart(ctx context.Context, choice *rand.Rand) error {
	begin, node, ctx := time.Now(), o.node(choice), context.WithoutCancel(ctx)
	if err := o.cluster.Component(ctx, "restart", "kubelet", node); err != nil {
		return err
	}
	if err := o.cluster.NodeReady(ctx, node, begin); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindKubeletRestart, Node: node, Begin: begin, Impedes: true})
}
