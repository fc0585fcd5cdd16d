package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/report"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const (
	overloadProbes = 5 // of each pod
	overloadPeriod = time.Second
	overloadWindow = 2 * time.Minute
	// bystanders are pods with a readiness probe of kubelet every second.
	bystanders     = 5
	bystanderLabel = "bystander"
)

// overload is what came of more exec probes than the node can run.
type overload struct {
	Probes int `json:"probes"`
	// First is how long it took until all had a result; Right are the results in the end, and False the most failures
	// seen at one time, of commands that all succeed.
	First time.Duration `json:"firstNanoseconds"`
	Right int           `json:"right"`
	False int           `json:"false"`
	// Delayed is what the condition of the NodePodProbe says.
	Delayed string `json:"delayed"`
	// Load is the largest load average over one minute, before and during the window.
	LoadBefore float64 `json:"loadBefore"`
	Load       float64 `json:"load"`
	// Unready counts the changes of kubelet's readiness of the other pods.
	Unready int    `json:"unready"`
	Sample  sample `json:"sample"`
}

// overloaded has exec probes of all pods run every second for two minutes, beside pods that kubelet probes.
func (b *bench) overloaded(ctx context.Context, pods int) (*overload, error) {
	o := &overload{Probes: pods * overloadProbes, LoadBefore: loadAverage()}
	b.say("%d pods with %d exec probes each, every %s ...", pods, overloadProbes, overloadPeriod)
	if err := b.cluster.create(ctx, b.cluster.overloadPods(pods)); err != nil {
		return nil, err
	}
	if err := wait.For(ctx, calm); err != nil {
		return nil, err
	}
	before, err := b.cluster.readiness(ctx)
	if err != nil {
		return nil, err
	}
	marker := b.cluster.overloadMarker()
	if err := b.cluster.API.Create(ctx, marker); err != nil {
		return nil, fmt.Errorf("make marker: %w", err)
	}
	watching, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- b.watchOverload(watching, o) }()
	o.Sample, err = b.measure(ctx, overloadWindow)
	stop()
	if watched := <-done; err == nil {
		err = watched
	}
	if err != nil {
		return nil, err
	}
	after, err := b.cluster.readiness(ctx)
	if err != nil {
		return nil, err
	}
	for name, since := range after {
		if !since.Equal(before[name]) {
			o.Unready++
		}
	}
	if err := b.cluster.API.Delete(ctx, marker); err != nil {
		return nil, fmt.Errorf("delete marker: %w", err)
	}
	b.say("overload: %d of %d right, %d failures, first results after %s, load %.1f", o.Right, o.Probes, o.False, report.Duration(o.First), o.Load)
	return o, b.cluster.deletePods(ctx)
}

// watchOverload looks at the results until ctx ends.
func (b *bench) watchOverload(ctx context.Context, o *overload) error {
	began := time.Now()
	for {
		found := &v1alpha1.NodePodProbe{}
		err := b.cluster.API.Get(ctx, client.ObjectKey{Name: testcluster.Node}, found)
		switch {
		case ctx.Err() != nil:
			return nil
		case client.IgnoreNotFound(err) != nil: // there is none before the node's first probe
			return fmt.Errorf("read results: %w", err)
		}
		right, failed := 0, 0
		for _, pod := range found.Status.PodProbeStatuses {
			for _, state := range pod.ProbeStates {
				switch state.State {
				case v1alpha1.ProbeSucceeded:
					right++
				case v1alpha1.ProbeFailed:
					failed++
				}
			}
		}
		o.Right, o.False, o.Load = right, max(o.False, failed), max(o.Load, loadAverage())
		if c := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionProbesDelayed); c != nil && c.Status == metav1.ConditionTrue {
			o.Delayed = c.Message
		}
		if right+failed >= o.Probes && o.First == 0 {
			o.First = time.Since(began)
		}
		if wait.For(ctx, time.Second) != nil {
			return nil
		}
	}
}

func (c *cluster) overloadPods(count int) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, count+bystanders)
	for i := range count + bystanders {
		pod := c.pod(fmt.Sprintf("o-%03d", i), nil)
		pod.Spec.Containers = pod.Spec.Containers[:1]
		if i >= count {
			pod.Labels = map[string]string{podLabel: bystanderLabel}
			handler := *handlers["http"].DeepCopy()
			pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 1}
		}
		pods = append(pods, pod)
	}
	return pods
}

func (c *cluster) overloadMarker() *v1alpha1.PodProbeMarker {
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Name: "overload", Namespace: c.Namespace}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{podLabel: "probe"}}
	for i := range overloadProbes {
		one := v1alpha1.PodContainerProbe{Name: fmt.Sprint(i), ContainerName: "app", PodConditionType: fmt.Sprintf("%sp%d", conditions, i)}
		one.Probe.Probe = corev1.Probe{ProbeHandler: *handlers["exec"].DeepCopy(), PeriodSeconds: int32(overloadPeriod / time.Second), TimeoutSeconds: 1}
		marker.Spec.Probes = append(marker.Spec.Probes, one)
	}
	return marker
}

// readiness is when each bystander has become ready or not last.
func (c *cluster) readiness(ctx context.Context) (map[string]time.Time, error) {
	pods := &corev1.PodList{}
	if err := c.API.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels{podLabel: bystanderLabel}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	since := map[string]time.Time{}
	for i := range pods.Items {
		since[pods.Items[i].Name], _ = readySince(&pods.Items[i])
	}
	return since, nil
}

// unboundedLoad is the load average that the same probes caused on two processors before the number of commands was bounded.
const unboundedLoad = 44

// loadAverage is the load average of the last minute (proc_loadavg(5)); 0 if it cannot be read.
func loadAverage() float64 {
	var load float64
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &load); err != nil {
		return 0
	}
	return load
}

func (o *overload) verdicts() []report.Verdict {
	return []report.Verdict{
		{What: "results right", Target: fmt.Sprint(o.Probes), Found: fmt.Sprint(o.Right), Met: o.Right == o.Probes},
		report.None("failures of commands that succeed", o.False),
		report.None("changes of kubelet's readiness of other pods", o.Unready),
		{What: "load average", Target: fmt.Sprint(unboundedLoad), Found: fmt.Sprintf("%.0f", o.Load), Met: o.Load <= unboundedLoad},
	}
}
