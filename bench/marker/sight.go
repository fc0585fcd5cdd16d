package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
)

// newSight follows the pods and NodePodProbes by watches: lists of thousands of pods several times a second would take
// more of the machine than what is measured.
func newSight(ctx context.Context, kubeconfig string, scheme *runtime.Scheme) (client.Reader, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	sight, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultUnsafeDisableDeepCopy: new(true), DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Namespaces: map[string]cache.Config{namespace: {}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	go func() { _ = sight.Start(ctx) }() // until ctx ends
	for _, object := range []client.Object{&corev1.Pod{}, &v1alpha1.NodePodProbe{}} {
		if _, err := sight.GetInformer(ctx, object); err != nil {
			return nil, fmt.Errorf("follow %T: %w", object, err)
		}
	}
	if !sight.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("follow pods: %w", context.Cause(ctx))
	}
	return sight, nil
}
