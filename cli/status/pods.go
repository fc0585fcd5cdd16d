package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/inplace/gate"
)

// podPage is how many pods are read at a time.
const podPage = 500

// pods returns the rows of pods that an in-place update keeps out of their Services; none if the user may not list pods.
func (c Config) pods(ctx context.Context) ([]Line, error) {
	var lines []Line
	for next := ""; ; {
		var page corev1.PodList
		err := c.API.List(ctx, &page, client.InNamespace(c.Namespace), client.Limit(podPage), client.Continue(next))
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			if message := gate.Message(&page.Items[i]); message != "" {
				name := "pod/" + page.Items[i].Name
				lines = append(lines, Line{Object: &page.Items[i], Name: name, Target: name, State: "OutOfServices", Done: none, By: none, Detail: message, Ended: time.Time{}})
			}
		}
		if next = page.Continue; next == "" {
			return lines, nil
		}
	}
}
