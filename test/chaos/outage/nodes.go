package outage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

// nodeAnew deletes the object of a node and has kubelet register the node again. Its pods stay: only the pods of a node that
// is gone for 40 s are deleted.
func (o *Outages) nodeAnew(ctx context.Context, choice *rand.Rand) error {
	begin, node, ctx := time.Now(), o.node(choice), context.WithoutCancel(ctx)
	if err := o.cluster.Component(ctx, "stop", "kubelet", node); err != nil {
		return err
	}
	err := o.cluster.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	if err := errors.Join(err, o.cluster.Component(ctx, "start", "kubelet", node)); err != nil {
		return err
	}
	if err := o.cluster.NodeReady(ctx, node, begin); err != nil {
		return err
	}
	if err := cluster.Until(ctx, "Refit is complete on the new node", cluster.RolloutTime, o.cluster.Installed); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindKubeletRestart, Node: node, Detail: records.DetailNodeAnew, Begin: begin, Impedes: true})
}

// nodeLost takes a node away as a power failure does, with every process on it, and gives it back after a minute. By then its
// pods are reported as not ready, and none is deleted yet.
func (o *Outages) nodeLost(ctx context.Context, choice *rand.Rand) error {
	const away = time.Minute
	begin, node, ctx := time.Now(), o.node(choice), context.WithoutCancel(ctx)
	if err := o.cluster.Component(ctx, "power", "off", node); err != nil {
		return err
	}
	_ = cluster.Pause(ctx, away)
	back := time.Now()
	if err := o.cluster.Component(ctx, "power", "on", node); err != nil {
		return err
	}
	if err := errors.Join(o.cluster.RuntimeAnswers(ctx, node), o.cluster.NodeReady(ctx, node, back)); err != nil {
		return err
	}
	if err := cluster.Until(ctx, "all pods of the node to be back", cluster.RolloutTime, func(ctx context.Context) bool {
		return o.cluster.Installed(ctx) && o.led(ctx, back) && o.podsReady(ctx, node, back)
	}); err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindNodeLost, Node: node, Detail: fmt.Sprintf("for %s", away), Begin: begin, Impedes: true})
}

// podsReady reports whether the pods of the run that were on the node before that time are ready on it again. Others come and
// go meanwhile.
func (o *Outages) podsReady(ctx context.Context, node string, since time.Time) bool {
	var pods corev1.PodList
	if err := o.cluster.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return false
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		old := pod.DeletionTimestamp == nil && pod.CreationTimestamp.Time.Before(since) && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
		if old && strings.HasPrefix(pod.Namespace, cluster.Label+"-load") && !cluster.Ready(pod) {
			return false
		}
	}
	return true
}

// diskFull leaves no room on the disk of a node's container runtime: it pulls no image and creates no container.
func (o *Outages) diskFull(ctx context.Context, choice *rand.Rand) error {
	begin, node, ctx := time.Now(), o.node(choice), context.WithoutCancel(ctx)
	if err := o.cluster.Component(ctx, "disk", "full", node); err != nil {
		return err
	}
	_ = cluster.Pause(ctx, 2*o.outage())
	if err := o.cluster.Component(ctx, "disk", "free", node); err != nil {
		return err
	}
	if err := o.cluster.RuntimeAnswers(ctx, node); err != nil {
		return err
	}
	// Kubelet tries to create a container again after up to 10 s.
	_ = cluster.Pause(ctx, o.outage())
	return o.journal.Fault(entry.Fault{Kind: entry.KindNodeDiskFull, Node: node, Begin: begin, Impedes: true})
}

// throttle gives the daemon of a node 5 % of a processor for a while, as a CPU limit of 50m does. Its liveness probe must
// go on.
func (o *Outages) throttle(ctx context.Context, choice *rand.Rand) error {
	const share = 5 // percent
	ctx, node := context.WithoutCancel(ctx), o.node(choice)
	pods, err := o.cluster.SystemPods(ctx, cluster.DaemonName)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].Spec.NodeName != node {
			continue
		}
		pid, err := cluster.Process(string(pods[i].UID), cluster.DaemonName)
		if err != nil {
			return err
		}
		begin := time.Now()
		restore, err := limitCPU(pid, share)
		if err != nil {
			return err
		}
		_ = cluster.Pause(ctx, 3*o.outage())
		if err := restore(); err != nil {
			return err
		}
		return o.journal.Fault(entry.Fault{Kind: entry.KindThrottle, Node: node, Detail: fmt.Sprintf("%d %% of a processor", share), Begin: begin, Impedes: true})
	}
	return fmt.Errorf("no %s on %s", cluster.DaemonName, node)
}

// limitCPU writes the limit of the process's cgroup, of version 1 or 2.
func limitCPU(pid, percent int) (restore func() error, err error) {
	const period = 100_000 // microseconds
	folder, err := cluster.Cgroup(pid, "cpu")
	if err != nil {
		return nil, err
	}
	name, limit, none := filepath.Join(folder, "cpu.max"), fmt.Sprintf("%d %d", period*percent/100, period), "max"
	if _, err := os.Stat(name); err != nil {
		name, limit, none = filepath.Join(folder, "cpu.cfs_quota_us"), strconv.Itoa(period*percent/100), "-1"
	}
	if err := os.WriteFile(name, []byte(limit), 0); err != nil {
		return nil, fmt.Errorf("limit CPU: %w", err)
	}
	return func() error {
		if err := os.WriteFile(name, []byte(none), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("end limit of CPU: %w", err)
		}
		return nil
	}, nil
}

const (
	largeNamespace = cluster.Label + "-large"
	largePods      = 60
	largeBytes     = 250 << 10
)

// largePodsAppear creates pods with large annotations on a node and kills its daemon, which reads them all at once when it is
// back. Kubelet rejects the pods, as they select another node, so that they cost it nothing.
func (o *Outages) largePodsAppear(ctx context.Context, choice *rand.Rand) error {
	begin, node, ctx := time.Now(), o.node(choice), context.WithoutCancel(ctx)
	if err := o.cluster.Namespace(ctx, largeNamespace); err != nil {
		return err
	}
	for n := range largePods {
		pod := o.cluster.Pod(largeNamespace, fmt.Sprintf("large-%d", n), node, cluster.Shapes[0])
		pod.Spec.NodeSelector = map[string]string{cluster.Label: "none"}
		pod.Annotations = map[string]string{cluster.Label: strings.Repeat("large ", largeBytes/len("large "))}
		err := cluster.Until(ctx, "large pod", cluster.RolloutTime, func(ctx context.Context) bool {
			return client.IgnoreAlreadyExists(o.cluster.Create(ctx, pod.DeepCopy())) == nil
		})
		if err != nil {
			return err
		}
	}
	if err := o.restartDaemon(ctx, node); err != nil {
		return err
	}
	// The API server takes long for as many large objects, so that calls fail.
	err := cluster.Until(ctx, "end of the large pods", cluster.RolloutTime, func(ctx context.Context) bool {
		return o.cluster.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(largeNamespace), client.GracePeriodSeconds(0)) == nil
	})
	if err != nil {
		return err
	}
	return o.journal.Fault(entry.Fault{Kind: entry.KindLargePods, Node: node, Detail: fmt.Sprintf("%d of %d KiB", largePods, largeBytes>>10), Begin: begin, Impedes: true})
}

// restartDaemon replaces the daemon of a node, and waits until the new one is ready.
func (o *Outages) restartDaemon(ctx context.Context, node string) error {
	pods, err := o.cluster.SystemPods(ctx, cluster.DaemonName)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].Spec.NodeName != node {
			continue
		}
		if err := client.IgnoreNotFound(o.cluster.Delete(ctx, &pods[i])); err != nil {
			return fmt.Errorf("replace daemon: %w", err)
		}
	}
	return cluster.Until(ctx, "new daemon on "+node, cluster.RolloutTime, func(ctx context.Context) bool {
		now, err := o.cluster.SystemPods(ctx, cluster.DaemonName)
		for i := range now {
			for k := range pods {
				if now[i].UID == pods[k].UID && pods[k].Spec.NodeName == node {
					return false
				}
			}
		}
		return err == nil && o.cluster.DaemonsReady(ctx)
	})
}
