package facts

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/kubelet"
)

// ErrMalformed is wrapped by the error about an annotation that cannot be read.
var ErrMalformed = errors.New("malformed annotation")

// Facts are what the daemon of the pod's node has reported of its containers, by name.
type Facts map[string]v1beta1.RuntimeContainerMeta

// Read reads them from the pod's annotation; they are empty where no daemon reports any.
func Read(pod *corev1.Pod) (Facts, error) {
	known := Facts{}
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

// Of is what is known of exactly the instance of a container in the status.
func (f Facts) Of(status *corev1.ContainerStatus) (v1beta1.RuntimeContainerHashes, bool) {
	meta, ok := f[status.Name]
	return meta.Hashes, ok && status.ContainerID != "" && meta.ContainerID == status.ContainerID
}

// SameHash reports whether the instance was made from the container as it is in the spec.
func SameHash(hashes v1beta1.RuntimeContainerHashes, container *corev1.Container) bool {
	return strconv.FormatUint(hashes.PlainHash, 16) == kubelet.ContainerHash(container)
}
