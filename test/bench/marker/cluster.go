package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
)

const namespace = "refit-bench-marker"

// clear removes what a run has left, in an order in which nothing waits for anything.
func (b *bench) clear(ctx context.Context) error {
	if err := b.Cluster.DeletePods(ctx); err != nil {
		return err
	}
	if err := b.release(ctx); err != nil {
		return err
	}
	err := b.Cluster.DeleteNodes(ctx, func(ctx context.Context, node string) error {
		return client.IgnoreNotFound(b.Cluster.API.Delete(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}))
	})
	if err != nil {
		return err
	}
	return b.Cluster.DeleteNamespace(ctx)
}

// release takes the finalizers off markers: the manager that would is not running any more.
func (b *bench) release(ctx context.Context) error {
	var markers v1alpha1.PodProbeMarkerList
	err := b.Cluster.API.List(ctx, &markers, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return nil // there is no CRD yet
	}
	if err != nil {
		return fmt.Errorf("list markers: %w", err)
	}
	for i := range markers.Items {
		err := b.Cluster.API.Patch(ctx, &markers.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release marker: %w", err)
		}
	}
	return nil
}

func (b *bench) makePod(ctx context.Context, name, node string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "game"}}}
	pod.Spec = corev1.PodSpec{
		NodeName: node, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "main", Image: "fake", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}},
	}
	return b.Cluster.API.Create(ctx, pod)
}
