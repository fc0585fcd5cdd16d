package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	// name of the namespace, and the label of its nodes.
	name = "refit-bench-policies"
	// workload is the name of the Deployment and of its policy.
	workload = "web"
)

func key() client.ObjectKey { return client.ObjectKey{Namespace: name, Name: workload} }

func labels() map[string]string { return map[string]string{"bench": "policies"} }

func (b *bench) template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels()}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool), NodeSelector: map[string]string{name: "true"},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "log", Image: "log:1"}},
	}}
}

// create creates nodes, the Deployment with its ReplicaSet, and the policy. The owner holds the Deployment: there is no policy of the
// API server that would.
func (b *bench) create(ctx context.Context) error {
	err := testcluster.Each(ctx, b.Nodes, func(ctx context.Context, i int) error { return b.Cluster.CreateNode(ctx, b.node(i)) })
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: workload}}
	deployment.Spec = appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels()}, Template: b.template()}
	if err := b.Cluster.API.Create(ctx, deployment); err != nil {
		return fmt.Errorf("create Deployment: %w", err)
	}
	err = testcluster.Await(ctx, testcluster.PollInterval, time.Minute, "the ReplicaSet", func(ctx context.Context) (bool, error) {
		set, err := b.replicaSet(ctx)
		return set != nil, err
	})
	if err != nil {
		return err
	}
	if err := b.change(ctx, func(d *appsv1.Deployment) { d.Spec.Paused = true }); err != nil {
		return err
	}
	policy := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: workload}}
	policy.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: workload}
	policy.Spec.HoldPolicy, policy.Spec.MaxUnavailable = v1alpha1.HoldByOwner, new(intstr.FromString("20%"))
	return b.Cluster.API.Create(ctx, policy)
}

func (b *bench) node(i int) string { return fmt.Sprintf("fake-%04d", i%b.Nodes) }

// change changes the Deployment.
func (b *bench) change(ctx context.Context, change func(*appsv1.Deployment)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var deployment appsv1.Deployment
		if err := b.Cluster.API.Get(ctx, key(), &deployment); err != nil {
			return err
		}
		change(&deployment)
		return b.Cluster.API.Update(ctx, &deployment)
	})
}

// replicaSet returns the ReplicaSet of the Deployment; nil if there is none yet.
func (b *bench) replicaSet(ctx context.Context) (*appsv1.ReplicaSet, error) {
	var sets appsv1.ReplicaSetList
	if err := b.Cluster.API.List(ctx, &sets, client.InNamespace(name)); err != nil || len(sets.Items) == 0 {
		return nil, err
	}
	return &sets.Items[0], nil
}

// populate scales the Deployment, and creates its pods, bound to nodes. Its controller alone would create 20 pods a second; those
// that it creates meanwhile, it deletes again.
func (b *bench) populate(ctx context.Context, first, last int) error {
	if err := b.change(ctx, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(last)) }); err != nil {
		return err
	}
	set, err := b.replicaSet(ctx)
	if err != nil {
		return err
	}
	return testcluster.Each(ctx, last-first, func(ctx context.Context, i int) error {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = name, fmt.Sprintf("%s-%05d", set.Name, first+i)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		pod.Spec.NodeName = b.node(first + i)
		return b.Cluster.API.Create(ctx, pod)
	})
}

// counted is when the status says that n pods have the template of the Deployment and are ready.
func (b *bench) counted(n int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		var policy v1alpha1.InPlaceUpdatePolicy
		if err := b.followed.Get(ctx, key(), &policy); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		var deployment appsv1.Deployment
		if err := b.Cluster.API.Get(ctx, key(), &deployment); err != nil {
			return false, err
		}
		status := &policy.Status
		progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
		return status.ObservedTargetGeneration == deployment.Generation && int(status.MatchedPods) == n && int(status.UpdatedReadyPods) == n &&
			progressing != nil && progressing.Reason == v1alpha1.ReasonCompleted, nil
	}
}

func (b *bench) clear(ctx context.Context) error {
	policy := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: workload}}
	withoutFinalizers := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)) // no refit-manager runs
	if err := b.Cluster.API.Patch(ctx, policy, withoutFinalizers); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("remove finalizers of InPlaceUpdatePolicy: %w", err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: workload}}
	err := b.Cluster.API.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Deployment: %w", err)
	}
	if err := b.Cluster.DeletePods(ctx); err != nil {
		return err
	}
	if err := b.Cluster.DeleteNodes(ctx, nil); err != nil {
		return err
	}
	return b.Cluster.DeleteNamespace(ctx)
}
