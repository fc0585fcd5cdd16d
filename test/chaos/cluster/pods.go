package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	hookPort     = 8080
	podGrace     = int64(5)
	signalVolume = "signals"
)

// Shapes are the pods that are worked on.
var Shapes = []func(*corev1.PodSpec){
	func(*corev1.PodSpec) {},
	func(spec *corev1.PodSpec) { // two containers
		side := *spec.Containers[0].DeepCopy()
		side.Name = "side"
		SetEnv(&side, "CONTAINER_NAME", side.Name)
		spec.Containers = append(spec.Containers, side)
	},
	func(spec *corev1.PodSpec) { // a hook within the container
		spec.Containers[0].Lifecycle = preStop(corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/testapp", "sleep", "700ms"}},
		})
	},
	func(spec *corev1.PodSpec) { // a hook over the network, and readiness
		ReadyLate(spec)
		spec.Containers[0].Lifecycle = preStop(corev1.LifecycleHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/prestop?sleep=500ms", Port: intstr.FromInt32(hookPort)},
		})
	},
	func(spec *corev1.PodSpec) { // has to be killed
		spec.Containers[0].Args = []string{"--ignore-term"}
		grace := int64(2)
		spec.TerminationGracePeriodSeconds = &grace
	},
	func(spec *corev1.PodSpec) { // takes its time
		spec.Containers[0].Args = []string{"--term-delay=1500ms", "--exit-code=3"}
	},
	func(spec *corev1.PodSpec) {
		spec.Containers[0].Lifecycle = preStop(corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}})
	},
}

// ReadyLate is a pod that is ready some time after its start, as its readiness probe says.
func ReadyLate(spec *corev1.PodSpec) {
	spec.Containers[0].Args = []string{fmt.Sprintf("--http=:%d", hookPort), "--ready-after=500ms"}
	spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(hookPort)}},
		PeriodSeconds: 1,
	}
}

func preStop(handler corev1.LifecycleHandler) *corev1.Lifecycle {
	return &corev1.Lifecycle{PreStop: &handler}
}

// Pod of testapp, whose log outlives it.
func (c *Cluster) Pod(namespace, name, node string, shape func(*corev1.PodSpec)) *corev1.Pod {
	grace := podGrace
	directory := corev1.HostPathDirectory
	app := corev1.Container{
		Name: "app", Image: c.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		VolumeMounts: []corev1.VolumeMount{{Name: signalVolume, MountPath: "/signals"}},
		Env: []corev1.EnvVar{
			{Name: "POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}},
			{Name: "SIGNAL_LOG", Value: "/signals/$(POD_UID).jsonl"},
			{Name: "CONTAINER_NAME", Value: "app"},
		},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{app}, NodeName: node, TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			Volumes: []corev1.Volume{{Name: signalVolume, VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/run/" + LogFolder, Type: &directory},
			}}},
		},
	}
	shape(&pod.Spec)
	return pod
}

// SetEnv changes a variable that the container has.
func SetEnv(container *corev1.Container, name, value string) {
	for i := range container.Env {
		if container.Env[i].Name == name {
			container.Env[i].Value = value
		}
	}
}

// Start makes a pod and waits until it is ready. One that is there from a write whose answer was lost is as good.
func (c *Cluster) Start(ctx context.Context, pod *corev1.Pod) error {
	err := Until(ctx, "create pod "+pod.Name, time.Minute, func(ctx context.Context) bool {
		return c.Create(ctx, pod.DeepCopy()) == nil || c.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}) == nil
	})
	if err != nil {
		return err
	}
	return Until(ctx, "pod "+pod.Name+" is ready", RolloutTime, func(ctx context.Context) bool {
		var found corev1.Pod
		return c.Get(ctx, client.ObjectKeyFromObject(pod), &found) == nil && Ready(&found)
	})
}

// Remove deletes a pod and waits until it is gone.
func (c *Cluster) Remove(ctx context.Context, pod *corev1.Pod) error {
	return Until(ctx, "end of pod "+pod.Name, RolloutTime, func(ctx context.Context) bool {
		err := c.Delete(ctx, pod.DeepCopy())
		return err != nil && client.IgnoreNotFound(err) == nil
	})
}

// Ready reports whether the pod is ready and not being deleted.
func Ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
