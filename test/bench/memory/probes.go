package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	probed  = "bench.refit.dev/probed" // label of the pods
	webPort = 8080
)

// web is what is probed.
func web() corev1.Container {
	return corev1.Container{
		Name: "web", Image: "docker.io/library/busybox:1.36", ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"httpd", "-f", "-p", fmt.Sprint(webPort), "-h", "/etc"},
	}
}

// probe has each pod probed so many times a second by HTTP, until meanwhile returns; it begins when all probes have succeeded.
func (c *cluster) probe(ctx context.Context, pods, probes int, meanwhile func() error) error {
	marker := &v1beta1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "load"}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{probed: "true"}}
	for i := range probes {
		one := v1beta1.PodContainerProbe{Name: fmt.Sprint("p", i), ContainerName: "web", PodConditionType: fmt.Sprint("bench.refit.dev/p", i)}
		one.Probe.PeriodSeconds = 1
		one.Probe.HTTPGet = &corev1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt32(webPort)}
		marker.Spec.Probes = append(marker.Spec.Probes, one)
	}
	if err := c.API.Create(ctx, marker); err != nil {
		return fmt.Errorf("make marker: %w", err)
	}
	if err := c.untilProbed(ctx, pods*probes); err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	if err := c.API.Delete(ctx, marker); err != nil {
		return fmt.Errorf("delete marker: %w", err)
	}
	return c.untilProbed(ctx, 0)
}

// untilProbed waits until so many probes of the node have succeeded.
func (c *cluster) untilProbed(ctx context.Context, want int) error {
	what := fmt.Sprintf("%d probes to have succeeded", want)
	return testcluster.Await(ctx, time.Second, patience, what, func(ctx context.Context) (bool, error) {
		probes := &v1beta1.NodePodProbe{}
		if err := c.API.Get(ctx, client.ObjectKey{Name: testcluster.Node}, probes); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		found := 0
		for _, pod := range probes.Status.PodProbeStatuses {
			for _, state := range pod.ProbeStates {
				if state.State == v1beta1.ProbeSucceeded {
					found++
				}
			}
		}
		return found == want, nil
	})
}
