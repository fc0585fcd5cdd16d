package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// name of the namespace, and the beginning of the names of SidecarSets.
const name = "refit-bench-sidecarset"

// everywhere is the number of the SidecarSet that selects all pods.
const everywhere = -1

func setName(i int) string {
	if i == everywhere {
		return name + "-all"
	}
	return fmt.Sprintf("%s-%d", name, i)
}

// container of a SidecarSet.
func container(i int) string {
	if i == everywhere {
		return "audit"
	}
	return "agent"
}

func (b *bench) sidecarSet(i int) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: setName(i), Labels: map[string]string{name: "true"}}}
	set.Spec.Namespace = name
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"bench": "sidecarset"}}
	set.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromString("20%"))
	if i != everywhere {
		set.Spec.Selector.MatchLabels["set"] = fmt.Sprint(i)
	}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: container(i), Image: "agent:1"}}}
	return set
}

// create creates nodes, SidecarSets, and one object for each workload, which owns its pods: pods whose owner does not exist
// are deleted.
func (b *bench) create(ctx context.Context) error {
	err := testcluster.Each(ctx, b.Nodes, func(ctx context.Context, i int) error { return b.Cluster.CreateNode(ctx, b.node(i)) })
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	for i := everywhere; i < b.sets; i++ {
		if err := b.Cluster.API.Create(ctx, b.sidecarSet(i)); err != nil {
			return fmt.Errorf("create SidecarSet: %w", err)
		}
	}
	return testcluster.Each(ctx, b.workloads, func(ctx context.Context, i int) error {
		return b.Cluster.API.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: workload(i)}})
	})
}

func workload(i int) string        { return fmt.Sprintf("workload-%d", i) }
func (b *bench) node(i int) string { return fmt.Sprintf("fake-%04d", i%b.Nodes) }
func (b *bench) pod(i int) string  { return fmt.Sprintf("web-%05d", i) }
func (b *bench) setOf(pod int) int { return pod % b.workloads % b.sets }

// populate creates the pods from the first to before the last, as they are after injection.
func (b *bench) populate(ctx context.Context, first, last int) error {
	versions := map[int]*annotation.Version{}
	for i := everywhere; i < b.sets; i++ {
		var set v1beta1.SidecarSet // with the defaults that the API server has set
		if err := b.Cluster.API.Get(ctx, client.ObjectKey{Name: setName(i)}, &set); err != nil {
			return err
		}
		versions[i] = &annotation.Version{SidecarSet: set.Name, Hashes: revision.HashesOf(&set.Spec), Sidecars: annotation.Sidecars(&set.Spec)}
	}
	owners := make([]types.UID, b.workloads)
	err := testcluster.Each(ctx, b.workloads, func(ctx context.Context, i int) error {
		var owner corev1.ConfigMap
		if err := b.Cluster.API.Get(ctx, client.ObjectKey{Namespace: name, Name: workload(i)}, &owner); err != nil {
			return err
		}
		owners[i] = owner.UID
		return nil
	})
	if err != nil {
		return err
	}
	return testcluster.Each(ctx, last-first, func(ctx context.Context, i int) error {
		i += first
		of := i % b.workloads
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: b.pod(i), Labels: map[string]string{"bench": "sidecarset", "set": fmt.Sprint(b.setOf(i))},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: workload(of), UID: owners[of], Controller: new(true)}},
		}}
		pod.Spec = corev1.PodSpec{
			NodeName: b.node(i), AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "app", Image: "app:1"}},
		}
		for _, set := range []int{everywhere, b.setOf(i)} {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: container(set), Image: "agent:1", Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}},
			})
			pod.Annotations = annotation.Write(pod, versions[set], metav1.Now())
		}
		return b.Cluster.API.Create(ctx, pod)
	})
}

// status reads the status of SidecarSets.
func (b *bench) status(ctx context.Context, each func(set *v1beta1.SidecarSet) bool) (bool, error) {
	var list v1beta1.SidecarSetList
	if err := b.followed.List(ctx, &list); err != nil {
		return false, err
	}
	for i := range list.Items {
		set := &list.Items[i]
		if set.Labels[name] == "true" && (set.Status.ObservedGeneration != set.Generation || !each(set)) {
			return false, nil
		}
	}
	return len(list.Items) > 0, nil
}

// counted is when the statuses say that n pods are there, up to date and ready.
func (b *bench) counted(n int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		sum := 0
		done, err := b.status(ctx, func(set *v1beta1.SidecarSet) bool {
			if set.Name != setName(everywhere) {
				sum += int(set.Status.UpdatedReadyPods)
			} else if int(set.Status.UpdatedReadyPods) != n {
				return false
			}
			c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing)
			return c != nil && c.Reason == "Completed"
		})
		return done && sum == n, err
	}
}

func (b *bench) clear(ctx context.Context) error {
	if err := b.Cluster.DeletePods(ctx); err != nil {
		return err
	}
	var sets v1beta1.SidecarSetList
	err := b.Cluster.API.List(ctx, &sets, client.MatchingLabels{name: "true"})
	if meta.IsNoMatchError(err) {
		err = nil // there is no CRD yet
	}
	if err != nil {
		return fmt.Errorf("list SidecarSets: %w", err)
	}
	for i := range sets.Items {
		if err := b.Cluster.API.Delete(ctx, &sets.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete SidecarSet: %w", err)
		}
	}
	if err := b.Cluster.DeleteNodes(ctx, nil); err != nil {
		return err
	}
	return b.Cluster.DeleteNamespace(ctx)
}
