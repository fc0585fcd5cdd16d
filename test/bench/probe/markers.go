package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// conditions that the probes bring on their pods begin with this.
const conditions = "bench.refit.dev/"

// mark has so many probes put to each pod, and returns when all of the scenario have succeeded and their pods say so.
func (c *cluster) mark(ctx context.Context, s scenario, probes int) error {
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Name: s.String(), Namespace: c.Namespace}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{podLabel: "probe"}}
	for i := range probes {
		one := v1alpha1.PodContainerProbe{
			Name: fmt.Sprint(i), ContainerName: fmt.Sprintf("c%d", i%containers), PodConditionType: fmt.Sprintf("%sp%d", conditions, i),
		}
		one.Probe.Probe = s.probe(i)
		marker.Spec.Probes = append(marker.Spec.Probes, one)
	}
	if err := c.API.Create(ctx, marker); err != nil {
		return fmt.Errorf("make marker: %w", err)
	}
	return c.untilProbed(ctx, s, s.count)
}

func (c *cluster) unmark(ctx context.Context, s scenario) error {
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Name: s.String(), Namespace: c.Namespace}}
	if err := c.API.Delete(ctx, marker); err != nil {
		return fmt.Errorf("delete marker: %w", err)
	}
	return c.untilProbed(ctx, s, 0)
}

// untilProbed waits until so many probes of the scenario have succeeded, and all of their pods have the conditions.
func (c *cluster) untilProbed(ctx context.Context, s scenario, want int) error {
	what := fmt.Sprintf("%d probes to have succeeded", want)
	err := testcluster.Await(ctx, testcluster.PollInterval, setUpTimeout, what, func(ctx context.Context) (bool, error) {
		probes := &v1alpha1.NodePodProbe{}
		if err := c.API.Get(ctx, client.ObjectKey{Name: testcluster.Node}, probes); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		found := 0
		for _, pod := range probes.Status.PodProbeStatuses {
			for _, state := range pod.ProbeStates {
				if strings.HasPrefix(state.Name, s.String()+"#") && state.State == v1alpha1.ProbeSucceeded {
					found++
				}
			}
		}
		return found == want, nil
	})
	if err != nil {
		return err
	}
	return c.untilPods(ctx, func(pods []corev1.Pod) bool { return marked(pods) == want })
}

// marked is the number of the probes' conditions that are true.
func marked(pods []corev1.Pod) int {
	found := 0
	for _, pod := range pods {
		for _, condition := range pod.Status.Conditions {
			if strings.HasPrefix(string(condition.Type), conditions) && condition.Status == corev1.ConditionTrue {
				found++
			}
		}
	}
	return found
}

// turnPods turns the state of one pod after the other each second, down and up again, until ctx ends.
func (c *cluster) turnPods(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := c.API.List(ctx, pods, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		pod, text := pods.Items[i/2%len(pods.Items)], []string{"down", "up"}[i%2]
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+pod.Status.PodIP+":8080/state", strings.NewReader(text))
		if err != nil {
			return err
		}
		response, err := c.http.Do(request)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("turn the state of pod %s: %w", pod.Name, err)
		}
		_ = response.Body.Close()
	}
}
