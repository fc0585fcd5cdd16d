package kubelet

import (
	"fmt"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/must"
)

// ContainerHash returns the hash by which kubelet decides whether a running container still matches its spec, in the form
// of [AnnotationContainerHash]: base 16, without leading zeros. Since Kubernetes 1.31 it covers only the name and the image
// (kubelet, kubecontainer.HashContainer); for earlier versions see [WholeContainerHash].
func ContainerHash(container *corev1.Container) string {
	return hashOf(map[string]string{"name": container.Name, "image": container.Image})
}

// WholeContainerHash returns the hash of a kubelet before 1.31. It covers all fields, with the API server's defaults.
func WholeContainerHash(container *corev1.Container) string { return hashOf(container) }

func hashOf(value any) string {
	hash := fnv.New32a()
	// kubelet hashes the output of spew for the JSON bytes: the type, then each byte as a decimal number.
	fmt.Fprintf(hash, "([]uint8)%v", must.JSON(value))
	return strconv.FormatUint(uint64(hash.Sum32()), 16)
}
