package outage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

// electTime is what another manager may take to lead: the lease of the one that was killed lasts 15 s.
const electTime = 30 * time.Second

// managerKill kills the manager that leads, and waits until another one does.
func (o *Outages) managerKill(ctx context.Context, _ *rand.Rand) error {
	ctx = context.WithoutCancel(ctx)
	leader, err := o.leader(ctx)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(leader, "_")
	pod := cluster.PodNamed(cluster.SystemNamespace, name)
	if err := o.cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return fmt.Errorf("find manager that leads: %w", err)
	}
	pid, err := cluster.Process(string(pod.UID), cluster.ManagerName)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", name, err)
	}
	err = cluster.Until(ctx, "another manager to lead", electTime, func(ctx context.Context) bool {
		now, err := o.leader(ctx)
		return err == nil && now != leader
	})
	if err != nil {
		return err
	}
	// A pod of its own each time: kubelet would back off from the container.
	if err := o.cluster.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	elected := time.Since(begin).Round(100 * time.Millisecond)
	if err := cluster.Until(ctx, "the manager to be back", cluster.RolloutTime, o.cluster.Installed); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: records.KindManagerKill, Detail: fmt.Sprintf("%s, another leads after %s", name, elected), Begin: begin, Impedes: true})
}

// leader is the identity in the managers' lease, which begins with the pod's name.
func (o *Outages) leader(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := o.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: cluster.ManagerName}, &lease); err != nil {
		return "", fmt.Errorf("find manager that leads: %w", err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", fmt.Errorf("no %s leads", cluster.ManagerName)
	}
	return *lease.Spec.HolderIdentity, nil
}
