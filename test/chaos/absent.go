package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/history"
)

// absentLabel is one that no node has.
const absentLabel = runLabel + "/absent"

// absent takes Refit away and lets a pod start, crash and go.
func (r *run) absent(ctx context.Context) error {
	err := r.changeDaemons(ctx, func(set *appsv1.DaemonSet) {
		if set.Spec.Template.Spec.NodeSelector == nil {
			set.Spec.Template.Spec.NodeSelector = map[string]string{}
		}
		set.Spec.Template.Spec.NodeSelector[absentLabel] = "true"
	})
	if err != nil {
		return err
	}
	replicas, err := r.scaleManager(ctx, 0)
	if err != nil {
		return err
	}
	for _, name := range []string{daemonName, managerName} {
		err := until(ctx, "end of "+name, rolloutTime, func(ctx context.Context) bool {
			pods, err := r.systemPods(ctx, name)
			return err == nil && len(pods) == 0
		})
		if err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := r.liveWithout(ctx); err != nil {
		r.journal.say("without Refit: %v", err) // the judge says what it means
	}
	if err := r.journal.fault(history.Fault{Kind: history.KindAbsent, Detail: "manager and daemon", Begin: begin, Impedes: true}); err != nil {
		return err
	}
	if _, err := r.scaleManager(ctx, replicas); err != nil {
		return err
	}
	if err := r.daemonAsBefore(ctx); err != nil {
		return err
	}
	return until(ctx, "Refit is back", rolloutTime, r.installed)
}

// liveWithout is what pods do without Refit.
func (r *run) liveWithout(ctx context.Context) error {
	pod := r.pod(loadNamespace, "absent", r.cluster.nodes[0], func(spec *corev1.PodSpec) {
		spec.Containers[0].Args = []string{"--crash-after=3s", "--exit-code=1"}
	})
	if err := r.start(ctx, pod); err != nil {
		return err
	}
	err := until(ctx, "restart after a crash", time.Minute, func(ctx context.Context) bool {
		var found corev1.Pod
		return r.cluster.Get(ctx, client.ObjectKeyFromObject(pod), &found) == nil &&
			slices.ContainsFunc(found.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 && s.State.Running != nil })
	})
	if err != nil {
		return err
	}
	return r.remove(ctx, pod)
}

// scaleManager returns how many there were.
func (r *run) scaleManager(ctx context.Context, replicas int32) (int32, error) {
	var deployment appsv1.Deployment
	if err := r.cluster.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: managerName}, &deployment); err != nil {
		return 0, fmt.Errorf("find manager: %w", err)
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = &replicas
	if err := r.cluster.Patch(ctx, &deployment, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("scale manager: %w", err)
	}
	if before.Spec.Replicas == nil {
		return 1, nil
	}
	return *before.Spec.Replicas, nil
}

// installed reports whether manager and daemon are complete.
func (r *run) installed(ctx context.Context) bool {
	var deployment appsv1.Deployment
	err := r.cluster.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: managerName}, &deployment)
	return err == nil && deployment.Status.ObservedGeneration == deployment.Generation && deployment.Spec.Replicas != nil &&
		deployment.Status.ReadyReplicas == *deployment.Spec.Replicas && r.daemonsReady(ctx)
}
