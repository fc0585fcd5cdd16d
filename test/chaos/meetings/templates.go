package meetings

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

// The kinds of workloads.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"
)

// ofKind is a workload of the kind of the form, with the pods of a Deployment.
func ofKind(d *appsv1.Deployment, kind string) client.Object {
	switch kind {
	case kindStatefulSet:
		set := &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta}
		set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = d.Spec.Replicas, d.Spec.Selector, d.Spec.Template
		set.Spec.MinReadySeconds, set.Spec.ServiceName, set.Spec.PodManagementPolicy = d.Spec.MinReadySeconds, d.Name, appsv1.ParallelPodManagement
		return set
	case kindDaemonSet:
		set := &appsv1.DaemonSet{ObjectMeta: d.ObjectMeta}
		set.Spec.Selector, set.Spec.Template, set.Spec.MinReadySeconds = d.Spec.Selector, d.Spec.Template, d.Spec.MinReadySeconds
		return set
	}
	return d
}

// named is the workload of the stage, of which only the name is known.
func (s *stage) named() client.Object {
	object := ofKind(&appsv1.Deployment{}, s.kind)
	object.SetNamespace(s.namespace)
	object.SetName(workloadName)
	return object
}

// desired is how many pods the workload is to have; of a DaemonSet none are known at first.
func desired(object client.Object) int {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return int(*o.Spec.Replicas)
	case *appsv1.StatefulSet:
		return int(*o.Spec.Replicas)
	case *appsv1.DaemonSet:
		return max(1, int(o.Status.DesiredNumberScheduled))
	}
	return 0
}

// content is what a template says of the container side. Each of it can change in place.
type content struct{ image, cpu, mode string }

// contents are two that differ in all of it.
var contents = [2]content{{images[0], "100m", "slow"}, {images[1], "150m", "fast"}}

// modeLabel is on the pods, and a variable of the container side has its value.
const modeLabel = cluster.Label + "/mode"

// follower is the container side with the first content.
func follower() corev1.Container {
	side := sidecar("side", contents[0].image)
	side.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(contents[0].cpu)}
	side.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	side.Env = append(side.Env, corev1.EnvVar{
		Name: "MODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + modeLabel + "']"}},
	})
	return side
}

// other is a content that differs in one, two or three things.
func (s *stage) other(than content) content {
	to := than
	for to == than {
		to = content{contents[s.choice.IntN(2)].image, contents[s.choice.IntN(2)].cpu, contents[s.choice.IntN(2)].mode}
	}
	return to
}

// in reports whether a pod has the content.
func (c content) in(p corev1.Pod) bool {
	side := p.Spec.Containers[1]
	return side.Image == c.image && side.Resources.Limits.Cpu().String() == c.cpu && p.Labels[modeLabel] == c.mode
}

// templates: the template of a workload with an InPlaceUpdatePolicy changes: the image, the CPU or the environment of a container. Every
// other time it changes back in the middle, and readiness fails for a moment.
func templates(ctx context.Context, s *stage) error {
	side := follower()
	s.kind = []string{kindDeployment, kindStatefulSet, kindDaemonSet}[s.number%3]
	form := shape{replicas: 3, delay: 2, grace: 5, container: &side, mostDisabled: new(1), labels: map[string]string{modeLabel: contents[0].mode}}
	if err := s.workload(ctx, form); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.policy(ctx); err != nil {
		return err
	}
	now := contents[0]
	for range 3 {
		before := now
		now = s.other(before)
		if err := s.changeTemplate(ctx, now, false); err != nil {
			return err
		}
		if s.choice.IntN(2) == 0 {
			if err := s.meddle(ctx, before, now); err != nil {
				return err
			}
		}
		if err := s.follows(ctx); err != nil {
			return err
		}
	}
	return nil
}

// meddle waits for the first pod with a content, has readiness fail for a moment, and changes the template back and forth.
func (s *stage) meddle(ctx context.Context, before, now content) error {
	err := cluster.Until(ctx, "first pod with the template of "+s.namespace, rolloutTime, func(ctx context.Context) bool {
		pods, err := s.pods(ctx)
		return err == nil && slices.ContainsFunc(pods, now.in)
	})
	if err != nil {
		return err
	}
	if err := s.blip(ctx); err != nil {
		return err
	}
	if err := s.changeTemplate(ctx, before, false); err != nil {
		return err
	}
	if err := cluster.Pause(ctx, time.Duration(s.choice.Int64N(int64(8*time.Second)))); err != nil {
		return err
	}
	return s.changeTemplate(ctx, now, false)
}

// policy makes the InPlaceUpdatePolicy, and waits until the API server holds the workload when its template changes.
func (s *stage) policy(ctx context.Context) error {
	p := &refitv1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: workloadName}}
	p.Spec.TargetRef = refitv1alpha1.WorkloadReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: s.kind, Name: workloadName}
	p.Spec.PodUpdatePolicy, p.Spec.MaxUnavailable = refitv1alpha1.PodUpdateInPlaceOnly, new(intstr.FromInt32(1))
	s.left = append(s.left, p)
	if err := s.create(ctx, p); err != nil {
		return err
	}
	return s.changeTemplate(ctx, contents[1], true)
}

// changeTemplate sets the content of the template. A dry run waits until the API server would hold the workload.
func (s *stage) changeTemplate(ctx context.Context, to content, dryRun bool) error {
	patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"spec":{"template":{"metadata":{"labels":{%q:%q}},"spec":{"containers":[{"name":"side","image":%q,"resources":{"limits":{"cpu":%q}}}]}}}}`,
		modeLabel, to.mode, to.image, to.cpu))
	var options []client.PatchOption
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	return cluster.Until(ctx, "template of "+s.namespace, time.Minute, func(ctx context.Context) bool {
		object := s.named()
		err := s.cluster.Patch(ctx, object, patch, options...)
		return err == nil && (!dryRun || object.GetLabels()[refitv1alpha1.LabelHeld] == "true")
	})
}

// follows waits until all pods have the template.
func (s *stage) follows(ctx context.Context) error {
	return cluster.Until(ctx, "end of the update of "+s.namespace, rolloutTime, func(ctx context.Context) bool {
		object, p := s.named(), &refitv1alpha1.InPlaceUpdatePolicy{}
		key := client.ObjectKeyFromObject(object)
		return s.cluster.Get(ctx, key, object) == nil && s.cluster.Get(ctx, key, p) == nil &&
			p.Status.ObservedTargetGeneration == object.GetGeneration() && meta.IsStatusConditionTrue(p.Status.Conditions, refitv1alpha1.ConditionReady)
	})
}
