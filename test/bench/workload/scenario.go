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
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	limit    = 10 * time.Minute // for one update
	interval = 50 * time.Millisecond
	// settle is how long pods are left alone before they are changed, as pods in use are.
	settle = 5 * time.Second
)

// The two images have the same program and different digests; both are on the nodes before anything is measured.
var images = []string{"docker.io/library/busybox:1.35", "docker.io/library/busybox:1.36"}

// way is how a Deployment is updated. Those of one pace are compared.
type way struct {
	name, pace         string
	surge, unavailable intstr.IntOrString
	inPlace            bool
}

var (
	none, one, quarter = intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("25%")

	ways = []way{
		{name: "in place, maxUnavailable 1", pace: "1", unavailable: one, inPlace: true},
		{name: "native, maxUnavailable 1", pace: "1", unavailable: one},
		{name: "native, maxSurge 1", pace: "1", surge: one},
		{name: "in place, maxUnavailable 25%", pace: "25%", unavailable: quarter, inPlace: true},
		{name: "native, maxUnavailable 25%", pace: "25%", unavailable: quarter},
		{name: "native, maxSurge 25%", pace: "25%", surge: quarter},
	}
)

type bench struct {
	*testcluster.Cluster
}

// prepare creates the namespace, and has both images on each node.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.Recreate(ctx); err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := b.API.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, node := range nodes.Items {
		for i, image := range images {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: fmt.Sprintf("pull-%s-%d", node.Name, i)}, Spec: podSpec(image)}
			pod.Spec.NodeName = node.Name
			if err := b.CreatePod(ctx, pod); err != nil {
				return fmt.Errorf("create pod: %w", err)
			}
			err := testcluster.Await(ctx, interval, limit, "the pod "+pod.Name, func(ctx context.Context) (bool, error) {
				return pod.Status.Phase == corev1.PodRunning, b.API.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			})
			if err != nil {
				return err
			}
			if err := testcluster.Remove(ctx, b.API, pod, client.GracePeriodSeconds(0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// podSpec has a program that ends when it is told to: what is measured is not its grace period.
func podSpec(image string) corev1.PodSpec {
	return corev1.PodSpec{AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{
		Name: "app", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"sh", "-c", `trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done`},
	}}}
}

func (b *bench) key() client.ObjectKey { return client.ObjectKey{Namespace: b.Namespace, Name: "web"} }

// measure makes a Deployment with n pods, and updates it several times.
func (b *bench) measure(ctx context.Context, by way, n, rounds int) (result, error) {
	found := result{Way: by.name, Pace: by.pace, Pods: n, InPlace: by.inPlace}
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "web"}}
	deployment.Spec = appsv1.DeploymentSpec{
		Replicas: new(int32(n)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(images[0])},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &by.surge, MaxUnavailable: &by.unavailable}},
	}
	if err := b.API.Create(ctx, deployment); err != nil {
		return found, fmt.Errorf("create Deployment: %w", err)
	}
	done := b.rolledOut
	policy := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "web"}}
	if by.inPlace {
		done = b.updated
		policy.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		policy.Spec.MaxUnavailable = &by.unavailable
		if err := b.API.Create(ctx, policy); err != nil {
			return found, fmt.Errorf("create InPlaceUpdatePolicy: %w", err)
		}
	}
	if err := testcluster.Await(ctx, interval, limit, "the pods", done); err != nil {
		return found, err
	}
	for round := 1; round <= rounds; round++ {
		if err := b.round(ctx, &found, images[round%2], done); err != nil {
			return found, fmt.Errorf("%s: %w", by.name, err)
		}
	}
	if by.inPlace {
		if err := testcluster.Remove(ctx, b.API, policy); err != nil {
			return found, err
		}
	}
	if err := testcluster.Remove(ctx, b.API, deployment, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return found, err
	}
	return found, nil
}

// round changes the image and waits for the end of the update.
func (b *bench) round(ctx context.Context, into *result, image string, done func(context.Context) (bool, error)) error {
	if err := wait.For(ctx, settle); err != nil {
		return err
	}
	meter, err := b.watch(ctx, into.Pods)
	if err != nil {
		return err
	}
	defer meter.stop()
	began := time.Now()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var deployment appsv1.Deployment
		if err := b.API.Get(ctx, b.key(), &deployment); err != nil {
			return err
		}
		deployment.Spec.Template.Spec.Containers[0].Image = image
		return b.API.Update(ctx, &deployment)
	})
	if err != nil {
		return fmt.Errorf("change image: %w", err)
	}
	if err := testcluster.Await(ctx, interval, limit, "the update", done); err != nil {
		return err
	}
	into.Total = append(into.Total, time.Since(began))
	unavailable, created := meter.read()
	into.Unavailable = append(into.Unavailable, unavailable)
	into.Created += created
	return nil
}

// rolledOut is when the controller of the Deployment has completed its rollout, as kubectl rollout status says it.
func (b *bench) rolledOut(ctx context.Context) (bool, error) {
	var d appsv1.Deployment
	if err := b.API.Get(ctx, b.key(), &d); err != nil {
		return false, err
	}
	s, n := &d.Status, *d.Spec.Replicas
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == n && s.Replicas == n && s.AvailableReplicas == n, nil
}

// updated is when the policy says that all pods have the present template and are available.
func (b *bench) updated(ctx context.Context) (bool, error) {
	var d appsv1.Deployment
	var policy v1alpha1.InPlaceUpdatePolicy
	if err := b.API.Get(ctx, b.key(), &d); err != nil {
		return false, err
	}
	if err := b.API.Get(ctx, b.key(), &policy); err != nil {
		return false, err
	}
	return policy.Status.ObservedTargetGeneration >= d.Generation && policy.Status.UpdatedReadyPods == *d.Spec.Replicas &&
		meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionReady), nil
}
