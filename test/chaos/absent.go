package chaos

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/load"
)

// absentLabel is one that no node has.
const absentLabel = cluster.Label + "/absent"

// absent takes Refit away and lets a pod start, crash and go.
func (r *run) absent(ctx context.Context) error {
	err := r.cluster.ChangeDaemons(ctx, func(set *appsv1.DaemonSet) {
		if set.Spec.Template.Spec.NodeSelector == nil {
			set.Spec.Template.Spec.NodeSelector = map[string]string{}
		}
		set.Spec.Template.Spec.NodeSelector[absentLabel] = "true"
	})
	if err != nil {
		return err
	}
	replicas, err := r.cluster.ScaleManager(ctx, 0)
	if err != nil {
		return err
	}
	for _, name := range []string{cluster.DaemonName, cluster.ManagerName} {
		err := cluster.Until(ctx, "end of "+name, cluster.RolloutTime, func(ctx context.Context) bool {
			pods, err := r.cluster.SystemPods(ctx, name)
			return err == nil && len(pods) == 0
		})
		if err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := r.liveWithout(ctx); err != nil {
		r.journal.Say("without Refit: %v", err) // the judge says what it means
	}
	if err := r.journal.Fault(entry.Fault{Kind: entry.KindAbsent, Detail: "manager and daemon", Begin: begin, Impedes: true}); err != nil {
		return err
	}
	if _, err := r.cluster.ScaleManager(ctx, replicas); err != nil {
		return err
	}
	if err := r.daemonsPresent(ctx); err != nil {
		return err
	}
	return cluster.Until(ctx, "Refit is back", cluster.RolloutTime, r.cluster.Installed)
}

// liveWithout is what pods do without Refit.
func (r *run) liveWithout(ctx context.Context) error {
	pod := r.cluster.Pod(load.Namespace, "absent", r.cluster.Nodes[0], func(spec *corev1.PodSpec) {
		spec.Containers[0].Args = []string{"--crash-after=3s", "--exit-code=1"}
	})
	if err := r.cluster.Start(ctx, pod); err != nil {
		return err
	}
	// A container that kubelet has just started may be stopped before its program has written a line, on a slow machine.
	err := cluster.Until(ctx, "restart after a crash, and another crash", time.Minute, func(ctx context.Context) bool {
		var found corev1.Pod
		return r.cluster.Get(ctx, client.ObjectKeyFromObject(pod), &found) == nil &&
			slices.ContainsFunc(found.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 && s.State.Running == nil })
	})
	if err != nil {
		return err
	}
	return r.cluster.Remove(ctx, pod)
}

// daemonsPresent undoes what keeps the daemons from every node.
func (r *run) daemonsPresent(ctx context.Context) error {
	return r.cluster.ChangeDaemons(ctx, func(set *appsv1.DaemonSet) {
		delete(set.Spec.Template.Spec.NodeSelector, absentLabel)
	})
}
