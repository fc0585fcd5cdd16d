package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// stage of the rollout: a change of the SidecarSet, and the reason of its condition Progressing that is waited for.
type stage struct {
	said   string
	change func(*v1beta1.SidecarSetSpec)
	reason string
}

var stages = []stage{
	{"image: " + newImage + ", partition: 7", func(spec *v1beta1.SidecarSetSpec) {
		spec.Containers[0].Image = newImage
		spec.UpdateStrategy.Partition = new(intstr.FromInt32(7))
	}, "Partition"},
	{"partition: 0, paused: true", func(spec *v1beta1.SidecarSetSpec) {
		spec.UpdateStrategy.Partition, spec.UpdateStrategy.Paused = new(intstr.FromInt32(0)), true
	}, "Paused"},
	{"paused: false", func(spec *v1beta1.SidecarSetSpec) { spec.UpdateStrategy.Paused = false }, "Completed"},
}

// rollOut updates the sidecar of the ten pods, and checks that nothing else has changed.
func (d *demo) rollOut(ctx context.Context) error {
	before, err := d.pods(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\n  SidecarSet refit-demo-log, maxUnavailable: 2\n  %-56s %8s  %s\n", "change", "seconds", "then")
	for _, s := range stages {
		began := time.Now()
		set, err := d.change(ctx, prefix+"log", s.change)
		if err != nil {
			return err
		}
		set, err = d.status(ctx, set, "reason "+s.reason, func(set *v1beta1.SidecarSet) bool {
			c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing)
			return c != nil && c.Reason == s.reason
		})
		if err != nil {
			return err
		}
		message := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing).Message
		fmt.Fprintf(d.Out, "  %-56s %8.1f  %s: %s\n", s.said, time.Since(began).Seconds(), s.reason, message)
	}
	after, err := d.pods(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\n  of the %d pods            %s\n", len(after), "sidecar restarted   application restarted   recreated or moved")
	var sidecars, applications, others int
	for name, pod := range after {
		was := before[name]
		if was == nil || was.UID != pod.UID || was.Status.PodIP != pod.Status.PodIP {
			others++
			continue
		}
		if id(was, "log") != id(pod, "log") {
			sidecars++
		}
		if id(was, "app") != id(pod, "app") {
			applications++
		}
	}
	fmt.Fprintf(d.Out, "                           %17d   %21d   %18d\n\n", sidecars, applications, others)
	if sidecars != replicas || applications != 0 || others != 0 {
		return errors.New("not the sidecars alone have been restarted")
	}
	return nil
}

func (d *demo) pods(ctx context.Context) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	if err := d.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": "web"}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

// id of the instance of a container; empty if there is none.
func id(pod *corev1.Pod, container string) string {
	statuses := pod.Status.ContainerStatuses
	if i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container }); i >= 0 {
		return statuses[i].ContainerID
	}
	return ""
}
