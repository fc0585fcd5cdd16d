package jobend

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache/trim"
)

// maxImage bounds the name of an image that can end a sidecar, in bytes. A sidecar with a longer name is not ended.
const maxImage = 512

// Keep copies from a pod what Due reads, see [trim.Part].
func Keep(kept, pod *corev1.Pod) {
	trim.RestartPolicies(kept, pod)
	trim.States(kept, pod)
	trim.EachContainer(kept, pod, func(kept, c *corev1.Container) {
		for _, e := range c.Env {
			if (e.Name == v1beta1.EnvTerminateSidecar || e.Name == v1beta1.EnvTerminateSidecarWithImage) && len(e.Value) <= maxImage {
				trim.Variable(kept, e.Name, e.Value)
			}
		}
	})
}
