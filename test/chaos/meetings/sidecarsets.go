package meetings

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

var images = []string{"docker.io/library/busybox:1.36", "docker.io/library/busybox:1.35"}

// sidecar is a container that is ready some seconds after its start. Each has a port of its own.
func sidecar(name, image string) corev1.Container {
	at := 9000 + int32(name[len(name)-1])
	return corev1.Container{
		Name: name, Image: image,
		Command: []string{"sh", "-c", fmt.Sprintf("trap 'exit 0' TERM; httpd -p %d -h /tmp; while :; do sleep 1000 & wait $!; done", at)},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(at)}},
			InitialDelaySeconds: 8, PeriodSeconds: 1, TimeoutSeconds: 5,
		},
	}
}

// set makes a SidecarSet of one container for the pods of the stage, and waits until the webhook knows it. Pods with the label first come
// first, or last.
func (s *stage) set(ctx context.Context, name string, firstLast bool, evicts bool) (*v1beta1.SidecarSet, error) {
	object := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name}}
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: workloadLabels()}
	object.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
	object.Spec.Containers = []v1beta1.SidecarContainer{{Container: sidecar(name, images[0])}}
	strategy := &object.Spec.UpdateStrategy
	strategy.MaxUnavailable = new(intstr.FromInt32(1))
	operator := metav1.LabelSelectorOpExists
	if firstLast {
		operator = metav1.LabelSelectorOpDoesNotExist
	}
	strategy.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{
		Weight: 100, MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: firstLabel, Operator: operator}}},
	}}}
	if evicts {
		strategy.RecreatePolicy = v1beta1.RecreateEvict
	}
	s.left = append([]client.Object{object}, s.left...)
	if err := s.create(ctx, object); err != nil {
		return nil, err
	}
	probe := s.cluster.Pod(s.namespace, "probe", "", func(*corev1.PodSpec) {})
	probe.Labels = workloadLabels()
	return object, cluster.Until(ctx, "the webhook to know "+object.Name, cluster.RolloutTime, func(ctx context.Context) bool {
		pod := probe.DeepCopy()
		return s.cluster.Create(ctx, pod, client.DryRunAll) == nil && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	})
}

// firstLabel is on one pod, which one SidecarSet updates first and the other last.
const firstLabel = cluster.Label + "/first"

// change changes the sidecar of a SidecarSet.
func (s *stage) change(ctx context.Context, set *v1beta1.SidecarSet, to func(*v1beta1.SidecarContainer)) error {
	return cluster.Until(ctx, "change of "+set.Name, time.Minute, func(ctx context.Context) bool {
		if s.cluster.Get(ctx, client.ObjectKeyFromObject(set), set) != nil {
			return false
		}
		before := set.DeepCopy()
		to(&set.Spec.Containers[0])
		return s.cluster.Patch(ctx, set, client.MergeFrom(before)) == nil
	})
}

func toImage(image string) func(*v1beta1.SidecarContainer) {
	return func(c *v1beta1.SidecarContainer) { c.Image = image }
}

// updated waits for the end of the rollout of a SidecarSet.
func (s *stage) updated(ctx context.Context, set *v1beta1.SidecarSet) error {
	return cluster.Until(ctx, "end of the rollout of "+set.Name, rolloutTime, func(ctx context.Context) bool {
		return s.cluster.Get(ctx, client.ObjectKeyFromObject(set), set) == nil && set.Status.ObservedGeneration == set.Generation &&
			set.Status.MatchedPods > 0 && set.Status.UpdatedReadyPods == set.Status.MatchedPods
	})
}

// sets: two SidecarSets and a RestartRollout at once, then one of the SidecarSets alone while readiness fails for a moment.
func sets(ctx context.Context, s *stage) error {
	if err := s.cluster.Namespace(ctx, s.namespace); err != nil {
		return err
	}
	var both []*v1beta1.SidecarSet
	for n, name := range []string{"x1", "x2"} {
		set, err := s.set(ctx, name, n > 0, false)
		if err != nil {
			return err
		}
		both = append(both, set)
	}
	if err := s.workload(ctx, shape{replicas: 3, delay: 4, grace: 10}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	pods, err := s.pods(ctx)
	if err != nil {
		return err
	}
	before := pods[0].DeepCopy()
	pods[0].Labels[firstLabel] = "yes"
	if err := s.cluster.Patch(ctx, &pods[0], client.MergeFrom(before)); err != nil {
		return fmt.Errorf("label pod: %w", err)
	}
	for _, set := range both {
		if err := s.change(ctx, set, toImage(images[1])); err != nil {
			return err
		}
	}
	r, err := s.rollout(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.ended(ctx, r); err != nil {
		return err
	}
	for _, set := range both {
		if err := s.updated(ctx, set); err != nil {
			return err
		}
	}
	return s.changeAndBlip(ctx, both[0], toImage(images[0]))
}

// evict: readiness fails for a moment while pods are evicted.
func evict(ctx context.Context, s *stage) error {
	if err := s.cluster.Namespace(ctx, s.namespace); err != nil {
		return err
	}
	set, err := s.set(ctx, "x3", false, true)
	if err != nil {
		return err
	}
	if err := s.workload(ctx, shape{replicas: 3, delay: 4, grace: 5}); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.changeAndBlip(ctx, set, func(c *v1beta1.SidecarContainer) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "CHANGED", Value: "true"})
	})
}

// changeAndBlip has readiness fail once the first pod is out.
func (s *stage) changeAndBlip(ctx context.Context, set *v1beta1.SidecarSet, to func(*v1beta1.SidecarContainer)) error {
	if err := s.change(ctx, set, to); err != nil {
		return err
	}
	err := cluster.Until(ctx, "first pod of "+set.Name, time.Minute, func(ctx context.Context) bool {
		pods, err := s.pods(ctx)
		return err == nil && slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !cluster.Ready(&p) })
	})
	if err != nil {
		return err
	}
	if err := s.blip(ctx); err != nil {
		return err
	}
	return s.updated(ctx, set)
}
