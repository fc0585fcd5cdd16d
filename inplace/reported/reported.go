package reported

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// ErrMalformed is wrapped by errors about an unreadable annotation.
var ErrMalformed = errors.New("malformed annotation")

// Containers is the container state that the daemon of the pod's node has reported, by container name.
type Containers map[string]v1beta1.RuntimeContainerMeta

// Read reads the reported state from the pod's annotation. The result is empty if no daemon reports it.
func Read(pod *corev1.Pod) (Containers, error) {
	known := Containers{}
	text, ok := pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta]
	if !ok {
		return known, nil
	}
	var set v1beta1.RuntimeContainerMetaSet
	if err := foreign.JSON(text, &set); err != nil {
		return known, fmt.Errorf("%w %s of pod %s: %w", ErrMalformed, v1beta1.AnnotationRuntimeContainersMeta, pod.Name, err)
	}
	for _, container := range set.Containers {
		known[container.Name] = container
	}
	return known, nil
}

// Of returns the hashes of exactly the instance in the container status, and false if they are not known.
func (c Containers) Of(status *corev1.ContainerStatus) (v1beta1.RuntimeContainerHashes, bool) {
	meta, ok := c[status.Name]
	return meta.Hashes, ok && status.ContainerID != "" && meta.ContainerID == status.ContainerID
}

// SameHash reports whether the instance was created from the container in the spec, by a kubelet of any version.
func SameHash(hashes v1beta1.RuntimeContainerHashes, container *corev1.Container) bool {
	made := strconv.FormatUint(hashes.PlainHash, 16)
	return made == kubelet.ContainerHash(container) || made == kubelet.WholeContainerHash(container)
}
