package outage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

// electTime is what another manager may take to lead: the lease of the one that was killed lasts 15 s.
const electTime = 30 * time.Second

// managerKill kills the manager that leads, and waits until another one does.
func (o *Outages) managerKill(ctx context.Context, _ *rand.Rand) error {
	return o.depose(context.WithoutCancel(ctx), entry.KindManagerKill, func(pid int, elect func() error) error {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill manager: %w", err)
		}
		return elect()
	})
}

// managerPause suspends the manager that leads until another one does. When it goes on it takes itself for the leader until
// it looks at its lease, as after a partition of the network.
func (o *Outages) managerPause(ctx context.Context, _ *rand.Rand) error {
	const both = 3 * time.Second
	ctx = context.WithoutCancel(ctx)
	return o.depose(ctx, entry.KindManagerPause, func(pid int, elect func() error) error {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("suspend manager: %w", err)
		}
		err := elect()
		_ = syscall.Kill(pid, syscall.SIGCONT) // kubelet may have ended it meanwhile
		_ = cluster.Pause(ctx, both)
		return err
	})
}

// depose does something to the process of the manager that leads, which waits for another one to lead by calling elect, and
// replaces the manager.
func (o *Outages) depose(ctx context.Context, kind string, do func(pid int, elect func() error) error) error {
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
	var elected time.Duration
	begin := time.Now()
	err = do(pid, func() error {
		err := cluster.Until(ctx, "another manager to lead", electTime, func(ctx context.Context) bool {
			now, err := o.leader(ctx)
			return err == nil && now != leader
		})
		elected = time.Since(begin).Round(100 * time.Millisecond)
		return err
	})
	if err != nil {
		return err
	}
	// A pod of its own each time: kubelet would back off from the container.
	if err := o.cluster.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	if err := cluster.Until(ctx, "the manager to be back", cluster.RolloutTime, o.cluster.Installed); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: kind, Detail: fmt.Sprintf("%s, another leads after %s", name, elected), Begin: begin, Impedes: true})
}

// led reports whether a manager has led since that time. One whose node was lost is elected when its lease of before has run out.
func (o *Outages) led(ctx context.Context, since time.Time) bool {
	lease, err := o.lease(ctx)
	return err == nil && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(since)
}

// lease is the lease of the managers.
func (o *Outages) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := o.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: cluster.ManagerName}, lease); err != nil {
		return nil, fmt.Errorf("find manager that leads: %w", err)
	}
	return lease, nil
}

// leader is the identity in the managers' lease, which begins with the pod's name.
func (o *Outages) leader(ctx context.Context) (string, error) {
	lease, err := o.lease(ctx)
	if err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", fmt.Errorf("no %s leads", cluster.ManagerName)
	}
	return *lease.Spec.HolderIdentity, nil
}

// secondManager runs another manager beside the managers of the Deployment, which rolls SidecarSets out without asking for the
// lease. It serves no webhooks: the Service does not select it.
func (o *Outages) secondManager(ctx context.Context, _ *rand.Rand) error {
	ctx = context.WithoutCancel(ctx)
	var deployment appsv1.Deployment
	if err := o.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: cluster.ManagerName}, &deployment); err != nil {
		return fmt.Errorf("find manager: %w", err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: cluster.ManagerName + "-second", Labels: map[string]string{cluster.Label: "true"}},
		Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
	}
	container := &pod.Spec.Containers[0]
	container.Args = append(container.Args, "--leader-elect=false", "--pod-probes=false", "--images=false", "--container-recreate-requests=false", "--restart-rollouts=false")
	begin := time.Now() // it decides as soon as it runs, before it is ready
	if err := o.cluster.Start(ctx, pod); err != nil {
		return err
	}
	_ = cluster.Pause(ctx, 3*o.outage())
	fault := entry.Fault{Kind: records.KindSecondManager, Detail: "without a lease", Begin: begin}
	if err := o.cluster.Remove(ctx, pod); err != nil {
		return err
	}
	return o.journal.Fault(fault)
}
