package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

const (
	// Each workload has a namespace of its own, as the judge takes the pods of a namespace for the pods of its workload.
	changeNamespace   = cluster.Label + "-changes"
	scheduleNamespace = cluster.Label + "-schedule"
	changeReplicas    = 2
	configName        = "settings"
	scheduleName      = "minutely"
	// changeTime is the wait for the end of the rollout after the last change.
	changeTime = 4 * time.Minute
)

// Changes are changes of a ConfigMap that a Deployment uses, and a RestartSchedule of another Deployment.
type Changes struct {
	cluster *cluster.Cluster
	choice  *rand.Rand
	written int
}

// StartChanges makes the workloads, and waits until their pods are ready and the ConfigMap is watched.
func StartChanges(ctx context.Context, c *cluster.Cluster, choice *rand.Rand) (*Changes, error) {
	s := &Changes{cluster: c, choice: choice}
	for _, namespace := range []string{changeNamespace, scheduleNamespace} {
		if err := c.Namespace(ctx, namespace); err != nil {
			return nil, err
		}
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: changeNamespace, Name: configName}, Data: s.content()}
	schedule := &refitv1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: scheduleNamespace, Name: scheduleName}}
	schedule.Spec.Schedule = "* * * * *"
	schedule.Spec.RolloutTemplate.Spec = refitv1alpha1.RestartRolloutSpec{TargetRef: workloadReference(), Containers: refitv1alpha1.RolloutContainers("app")}
	for _, object := range []client.Object{config, s.configured(), s.workload(scheduleNamespace), schedule} {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, object)); err != nil {
			return nil, fmt.Errorf("make %T: %w", object, err)
		}
	}
	return s, cluster.Until(ctx, "workloads with a trigger and a schedule", cluster.RolloutTime, func(ctx context.Context) bool {
		return s.available(ctx, changeNamespace) && s.available(ctx, scheduleNamespace) && s.watched(ctx)
	})
}

func workloadReference() *refitv1alpha1.WorkloadReference {
	return &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: rolloutWorkload}
}

func (s *Changes) workload(namespace string) *appsv1.Deployment {
	labels := map[string]string{cluster.Label: rolloutWorkload}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rolloutWorkload}}
	object.Spec.Replicas = new(int32(changeReplicas))
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	object.Spec.Template.Labels = labels
	object.Spec.Template.Spec = s.cluster.Pod(namespace, "", "", cluster.ReadyLate).Spec
	return object
}

// configured is a workload that mounts the ConfigMap and is restarted when that has changed.
func (s *Changes) configured() *appsv1.Deployment {
	object := s.workload(changeNamespace)
	object.Annotations = map[string]string{refitv1alpha1.AnnotationRestartOnConfigChange: "app"}
	spec := &object.Spec.Template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: configName, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configName}},
	}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: configName, MountPath: "/settings"})
	return object
}

// content is one that the ConfigMap has never had.
func (s *Changes) content() map[string]string {
	s.written++
	return map[string]string{"written": strconv.Itoa(s.written)}
}

func (s *Changes) available(ctx context.Context, namespace string) bool {
	var found appsv1.Deployment
	return s.cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: rolloutWorkload}, &found) == nil && found.Status.ReadyReplicas == changeReplicas
}

func (s *Changes) watched(ctx context.Context) bool {
	var triggers refitv1alpha1.RestartTriggerList
	return s.cluster.List(ctx, &triggers, client.InNamespace(changeNamespace)) == nil &&
		slices.ContainsFunc(triggers.Items, func(t refitv1alpha1.RestartTrigger) bool { return len(t.Status.Objects) > 0 })
}

// Run changes the ConfigMap until the context ends: now and then again while the first change is still waited with.
func (s *Changes) Run(ctx context.Context) error {
	const often, least, more = time.Second, 5 * time.Second, 40 * time.Second
	for pause := least; cluster.Pause(ctx, pause) == nil; {
		_ = s.change(ctx) // what matters is what was stored
		pause = often
		if s.choice.IntN(3) > 0 {
			pause = least + time.Duration(s.choice.Int64N(int64(more)))
		}
	}
	return nil
}

func (s *Changes) change(ctx context.Context) error {
	return call(ctx, func(ctx context.Context) error {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: changeNamespace, Name: configName}, Data: s.content()}
		if err := s.cluster.Update(ctx, config); err != nil {
			return fmt.Errorf("change ConfigMap: %w", err)
		}
		return nil
	})
}

// Last suspends the schedule, makes one more change without faults, and waits for the ends of all rollouts.
func (s *Changes) Last(ctx context.Context) error {
	err := cluster.Until(ctx, "end of the schedule", time.Minute, func(ctx context.Context) bool { return s.suspend(ctx) == nil })
	if err != nil {
		return err
	}
	before := s.rollouts(ctx)
	if err := cluster.Until(ctx, "last change of a ConfigMap", time.Minute, func(ctx context.Context) bool { return s.change(ctx) == nil }); err != nil {
		return err
	}
	err = cluster.Until(ctx, "rollout after the last change", changeTime, func(ctx context.Context) bool {
		return s.rollouts(ctx) > before && s.ended(ctx, changeNamespace) && s.ended(ctx, scheduleNamespace)
	})
	if !errors.Is(err, cluster.ErrLate) {
		return err
	}
	return nil // the judge says what it means
}

func (s *Changes) suspend(ctx context.Context) error {
	return call(ctx, func(ctx context.Context) error {
		schedule := &refitv1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: scheduleNamespace, Name: scheduleName}}
		if err := s.cluster.Get(ctx, client.ObjectKeyFromObject(schedule), schedule); err != nil {
			return fmt.Errorf("get schedule: %w", err)
		}
		before := schedule.DeepCopy()
		schedule.Spec.Suspend = true
		if err := s.cluster.Patch(ctx, schedule, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("suspend schedule: %w", err)
		}
		return nil
	})
}

// rollouts is how many rollouts there have been for changes.
func (s *Changes) rollouts(ctx context.Context) int {
	var found refitv1alpha1.RestartRolloutList
	_ = s.cluster.List(ctx, &found, client.InNamespace(changeNamespace))
	return len(found.Items)
}

func (s *Changes) ended(ctx context.Context, namespace string) bool {
	var found refitv1alpha1.RestartRolloutList
	return s.cluster.List(ctx, &found, client.InNamespace(namespace)) == nil && !slices.ContainsFunc(found.Items, func(r refitv1alpha1.RestartRollout) bool {
		return !meta.IsStatusConditionTrue(r.Status.Conditions, refitv1alpha1.ConditionFinished)
	})
}
