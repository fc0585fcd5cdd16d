package kubelet

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// ContainerHash is the hash by which kubelet decides whether a running container still matches its spec, in the form
// of [AnnotationContainerHash]: base 16, without leading zeros. Since Kubernetes 1.31 only the name and the image
// count (kubelet, kubecontainer.HashContainer); a kubelet before 1.31 hashes the whole container and gives another value.
func ContainerHash(container *corev1.Container) string {
	fields, err := json.Marshal(map[string]string{"name": container.Name, "image": container.Image})
	if err != nil {
		panic(err) // a map of strings can always be encoded
	}
	hash := fnv.New32a()
	// kubelet hashes what spew prints of the JSON bytes: the type, then each byte as a decimal number.
	fmt.Fprintf(hash, "([]uint8)%v", fields)
	return strconv.FormatUint(uint64(hash.Sum32()), 16)
}
