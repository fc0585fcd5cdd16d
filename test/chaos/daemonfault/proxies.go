package daemonfault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/records"
	"github.com/refit-project/refit/test/criproxy"
)

const (
	proxyFolder = "refit-chaos" // below the node's /run/containerd, which the daemon mounts
	proxyArg    = "--socket-file=/hostvarrun/containerd/" + proxyFolder + "/containerd.sock"
)

// Daemons causes the faults of the daemons of a cluster, through a CRI proxy in front of each node's containerd.
type Daemons struct {
	cluster *cluster.Cluster
	journal *records.Journal
	folder  string
	long    bool
	wires   []*tripwire

	auditLock sync.Mutex
	onAudit   func(line []byte) bool

	kills int
}

// New returns Daemons that record the calls in folder. In a long run CRI calls hang for longer.
func New(c *cluster.Cluster, journal *records.Journal, folder string, long bool) *Daemons {
	return &Daemons{cluster: c, journal: journal, folder: folder, long: long}
}

func (d *Daemons) record(name string) string { return filepath.Join(d.folder, name) }

// StartProxies puts a CRI proxy in front of each node's containerd. They run until the group's context ends.
func (d *Daemons) StartProxies(ctx context.Context, group *errgroup.Group) error {
	for _, node := range d.cluster.Nodes {
		folder := d.cluster.Run(node, "containerd", proxyFolder)
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil {
			return fmt.Errorf("make folder of the proxy: %w", err)
		}
		wire := &tripwire{node: node}
		d.wires = append(d.wires, wire)
		config := criproxy.Config{
			Listen: filepath.Join(folder, "containerd.sock"), Runtime: d.cluster.Socket(node),
			Record: d.record("calls-" + node + ".jsonl"), Faults: d.record(callFaultsFile),
			Interceptor: wire, Logger: slog.New(slog.DiscardHandler),
		}
		group.Go(func() error { return criproxy.Run(ctx, config) })
	}
	return nil
}

// UseProxies makes the daemons use the proxies.
func (d *Daemons) UseProxies(ctx context.Context) error {
	err := d.cluster.ChangeDaemons(ctx, func(set *appsv1.DaemonSet) {
		container := &set.Spec.Template.Spec.Containers[0]
		if !slices.Contains(container.Args, proxyArg) {
			container.Args = append(container.Args, proxyArg)
		}
	})
	if err != nil {
		return err
	}
	return cluster.Until(ctx, "daemons behind the proxies", cluster.RolloutTime, func(ctx context.Context) bool {
		seen := func(wire *tripwire) bool { pid, _ := wire.process(); return isDaemon(pid) }
		return d.cluster.DaemonsReady(ctx) && !slices.ContainsFunc(d.wires, func(w *tripwire) bool { return !seen(w) })
	})
}

// Restore makes the daemons use containerd's own socket again and removes the folders of the proxies.
func (d *Daemons) Restore(ctx context.Context) error {
	errs := []error{d.cluster.ChangeDaemons(ctx, func(set *appsv1.DaemonSet) {
		container := &set.Spec.Template.Spec.Containers[0]
		container.Args = slices.DeleteFunc(container.Args, func(arg string) bool { return arg == proxyArg })
	})}
	for _, node := range d.cluster.Nodes {
		errs = append(errs, os.RemoveAll(d.cluster.Run(node, "containerd", proxyFolder)))
	}
	return errors.Join(errs...)
}
