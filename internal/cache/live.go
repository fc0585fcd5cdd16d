package cache

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/cache/trim"
)

// livePage is the number of pods that are read at a time, which bounds the memory for large workloads and large pods: an
// object has up to 1.5 MiB.
const livePage = 50

// LivePods lists pods from the API server, not from the cache, and trims them.
func LivePods(ctx context.Context, live client.Reader, trimmer *trim.Pods, options ...client.ListOption) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for next := ""; ; {
		var page corev1.PodList
		if err := live.List(ctx, &page, append(slices.Clone(options), client.Limit(livePage), client.Continue(next))...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			pods = append(pods, trimmer.Of(&page.Items[i]))
		}
		if next = page.Continue; next == "" {
			return pods, nil
		}
	}
}
