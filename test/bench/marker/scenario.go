package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/testcluster"
)

const idle = "game.kruise.io/idle"

// scenario is the life of one marker.
func (b *bench) scenario(ctx context.Context) error {
	marker := b.marker()
	for _, s := range []struct {
		name    string
		changes int // objects that have to be written, at least
		do      func(context.Context) error
		done    func(context.Context) (bool, error)
	}{
		// Each node gets an empty NodePodProbe and a NodeImage.
		{"pods without a marker", 2 * b.Nodes, b.populate, b.running},
		{"marker created", b.Nodes, func(ctx context.Context) error { return b.Cluster.API.Create(ctx, marker) }, b.told("idle")},
		{firstResults, b.Pods, func(ctx context.Context) error { return b.report(ctx, b.Nodes, b.Pods, v1alpha1.ProbeSucceeded) }, b.marked("true", b.Pods)},
		{"nothing changes", 0, func(ctx context.Context) error { return wait.For(ctx, b.Quiet) }, nil},
		{"pods flip, each on another node", b.flips, func(ctx context.Context) error { return b.report(ctx, b.flips, b.flips, v1alpha1.ProbeFailed) }, b.marked("false", b.flips)},
		{"command of the probe changed", b.Nodes, func(ctx context.Context) error { return b.change(ctx, marker) }, b.told("busy")},
		{markerDeleted, b.Nodes + b.Pods, func(ctx context.Context) error { return b.Cluster.API.Delete(ctx, marker) }, b.cleaned},
	} {
		if err := b.Step(ctx, s.name, s.changes, s.do, s.done); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// Steps with a target of their own.
const (
	firstResults  = "first results"
	markerDeleted = "marker deleted"
)

func (b *bench) node(i int) string { return fmt.Sprintf("fake-%04d", i%b.Nodes) }

func (b *bench) marker() *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "game"}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	p := v1alpha1.PodContainerProbe{Name: "idle", ContainerName: "main", PodConditionType: idle}
	p.Probe.Exec = &corev1.ExecAction{Command: []string{"idle"}}
	p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{idle: "true"}, Annotations: map[string]string{"controller.kubernetes.io/pod-deletion-cost": "-10"}},
		{State: v1alpha1.ProbeFailed, Labels: map[string]string{idle: "false"}, Annotations: map[string]string{"controller.kubernetes.io/pod-deletion-cost": "10"}},
	}
	m.Spec.Probes = []v1alpha1.PodContainerProbe{p}
	return m
}

func (b *bench) populate(ctx context.Context) error {
	if err := testcluster.Each(ctx, b.Nodes, func(ctx context.Context, i int) error { return b.Cluster.CreateNode(ctx, b.node(i)) }); err != nil {
		return fmt.Errorf("make nodes: %w", err)
	}
	b.Say("%d nodes", b.Nodes)
	return testcluster.Each(ctx, b.Pods, func(ctx context.Context, i int) error {
		return b.makePod(ctx, fmt.Sprintf("game-%05d", i), b.node(i))
	})
}

func (b *bench) change(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	if err := b.Cluster.API.Get(ctx, client.ObjectKeyFromObject(marker), marker); err != nil {
		return err
	}
	marker.Spec.Probes[0].Probe.Exec.Command = []string{"busy"}
	return b.Cluster.API.Update(ctx, marker)
}

// report writes for the first pod of each of the nodes, or for all their pods, what a daemon would.
func (b *bench) report(ctx context.Context, nodes, pods int, state v1alpha1.ProbeState) error {
	return testcluster.Each(ctx, nodes, func(ctx context.Context, i int) error {
		var node v1alpha1.NodePodProbe
		if err := b.Cluster.API.Get(ctx, client.ObjectKey{Name: b.node(i)}, &node); err != nil {
			return err
		}
		before := node.DeepCopy()
		said := node.Status.PodProbeStatuses
		if len(said) == 0 {
			for _, pod := range node.Spec.PodProbes {
				said = append(said, v1alpha1.PodProbeStatus{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID})
			}
		}
		if pods <= nodes {
			said = said[:1]
		}
		for j := range said {
			said[j].ProbeStates = []v1alpha1.ContainerProbeState{{Name: "game#idle", State: state, LastTransitionTime: metav1.Now(), Message: string(state)}}
		}
		node.Status.PodProbeStatuses = append(said, node.Status.PodProbeStatuses[min(len(said), len(node.Status.PodProbeStatuses)):]...)
		return b.Cluster.API.Status().Patch(ctx, &node, client.MergeFrom(before))
	})
}

func (b *bench) running(ctx context.Context) (bool, error) {
	return b.count(ctx, func(p *corev1.Pod) bool { return p.Status.PodIP != "" && p.Status.Phase == corev1.PodRunning }, b.Pods)
}

func (b *bench) marked(label string, want int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return b.count(ctx, func(p *corev1.Pod) bool { return p.Labels[idle] == label }, want)
	}
}

func (b *bench) count(ctx context.Context, is func(*corev1.Pod) bool, want int) (bool, error) {
	var pods corev1.PodList
	if err := b.followed.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return false, err
	}
	found := 0
	for i := range pods.Items {
		if is(&pods.Items[i]) {
			found++
		}
	}
	return found == want, nil
}

// told reports whether all pods are to be probed by the command.
func (b *bench) told(command string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		var nodes v1alpha1.NodePodProbeList
		if err := b.followed.List(ctx, &nodes); err != nil {
			return false, err
		}
		found := 0
		for _, node := range nodes.Items {
			for _, pod := range node.Spec.PodProbes {
				if pod.Namespace == namespace && len(pod.Probes) == 1 && pod.IP != "" && pod.Probes[0].Probe.Exec.Command[0] == command {
					found++
				}
			}
		}
		return found == b.Pods, nil
	}
}

func (b *bench) cleaned(ctx context.Context) (bool, error) {
	carries := func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == idle {
				return true
			}
		}
		return p.Labels[idle] != "" || len(p.Annotations) > 0
	}
	if clean, err := b.count(ctx, carries, 0); err != nil || !clean {
		return false, err
	}
	var nodes v1alpha1.NodePodProbeList
	if err := b.followed.List(ctx, &nodes); err != nil {
		return false, err
	}
	for _, node := range nodes.Items {
		for _, pod := range node.Spec.PodProbes {
			if pod.Namespace == namespace {
				return false, nil
			}
		}
	}
	return true, nil
}
