package cluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Label marks what a run creates in the cluster.
const Label = "refit-chaos"

const (
	// LogFolder is where the applications write their logs, below /run of the node.
	LogFolder = "refit-chaos"
	// UpdatesLog is how the names of logs of updates end there.
	UpdatesLog = ".updates"
	// RolloutTime is what a rollout of Refit or the start or end of a pod may take: at a load of 45 on two cores kubelet reports
	// the end of a container after up to 100 s.
	RolloutTime = 5 * time.Minute
)

// ChangeDaemons patches the DaemonSet of the daemon.
func (c *Cluster) ChangeDaemons(ctx context.Context, change func(*appsv1.DaemonSet)) error {
	var set appsv1.DaemonSet
	if err := c.Get(ctx, client.ObjectKey{Namespace: SystemNamespace, Name: DaemonName}, &set); err != nil {
		return fmt.Errorf("find daemon: %w", err)
	}
	before := set.DeepCopy()
	change(&set)
	if err := c.Patch(ctx, &set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change daemon: %w", err)
	}
	return nil
}

// DaemonsReady reports whether the rollout of the daemon is complete.
func (c *Cluster) DaemonsReady(ctx context.Context) bool {
	var set appsv1.DaemonSet
	err := c.Get(ctx, client.ObjectKey{Namespace: SystemNamespace, Name: DaemonName}, &set)
	return err == nil && set.Status.ObservedGeneration == set.Generation &&
		set.Status.UpdatedNumberScheduled == set.Status.DesiredNumberScheduled && set.Status.NumberReady == set.Status.DesiredNumberScheduled
}

// SystemPods are the pods of one of our programs.
func (c *Cluster) SystemPods(ctx context.Context, name string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.List(ctx, &list, client.InNamespace(SystemNamespace), client.MatchingLabels{"app.kubernetes.io/name": name})
	return list.Items, err
}

// ScaleManager returns how many there were.
func (c *Cluster) ScaleManager(ctx context.Context, replicas int32) (int32, error) {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: SystemNamespace, Name: ManagerName}, &deployment); err != nil {
		return 0, fmt.Errorf("find manager: %w", err)
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = &replicas
	if err := c.Patch(ctx, &deployment, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("scale manager: %w", err)
	}
	if before.Spec.Replicas == nil {
		return 1, nil
	}
	return *before.Spec.Replicas, nil
}

// Installed reports whether manager and daemon are complete.
func (c *Cluster) Installed(ctx context.Context) bool {
	var deployment appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: SystemNamespace, Name: ManagerName}, &deployment)
	return err == nil && deployment.Status.ObservedGeneration == deployment.Generation && deployment.Spec.Replicas != nil &&
		deployment.Status.ReadyReplicas == *deployment.Spec.Replicas && c.DaemonsReady(ctx)
}

// Namespace makes a namespace, and waits for the service account without which no pod is let in.
func (c *Cluster) Namespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}}}
	if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return Until(ctx, "service account of "+name, time.Minute, func(ctx context.Context) bool {
		return c.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
}

// PodNamed is an object to delete or get by.
func PodNamed(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, name
	return pod
}
