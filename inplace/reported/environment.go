package reported

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
)

// MetadataEnv is an environment variable whose value is a label or an annotation of the pod.
type MetadataEnv struct {
	Name       string
	Key        string
	Annotation bool // false means a label
}

// MetadataEnvs returns these variables of the container, without the variables that OpenKruise injects for a SidecarSet.
func MetadataEnvs(container *corev1.Container) []MetadataEnv {
	var envs []MetadataEnv
	for _, env := range container.Env {
		if env.Value != "" || env.ValueFrom == nil || env.ValueFrom.FieldRef == nil ||
			env.Name == v1beta1.EnvSidecarSetVersion || env.Name == v1beta1.EnvSidecarSetVersionAlt {
			continue
		}
		path, ok := strings.CutSuffix(env.ValueFrom.FieldRef.FieldPath, "']")
		if !ok {
			continue
		}
		if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
			envs = append(envs, MetadataEnv{Name: env.Name, Key: key})
		} else if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
			envs = append(envs, MetadataEnv{Name: env.Name, Key: key, Annotation: true})
		}
	}
	return envs
}

// MetadataEnvHash returns the hash of the container's environment variables from labels and annotations, computed like
// v1beta1.RuntimeContainerHashes.ExtractedEnvFromMetadataHash. value returns the value of a variable: in the running
// container, or in the pod's metadata (see [ExpectedEnvHash]).
func MetadataEnvHash(container *corev1.Container, value func(MetadataEnv) string) uint64 {
	var envs []corev1.EnvVar // nil if there are none: OpenKruise then hashes "null"
	for _, env := range MetadataEnvs(container) {
		envs = append(envs, corev1.EnvVar{Name: env.Name, Value: value(env)})
	}
	slices.SortStableFunc(envs, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	text := must.JSON(envs)
	hash := fnv.New32a()
	fmt.Fprintf(hash, "([]uint8)%v", text) // like kubelet's hash of a container, see package kubelet
	return uint64(hash.Sum32())
}

// ExpectedEnvHash returns the MetadataEnvHash of a container that is started now.
func ExpectedEnvHash(container *corev1.Container, pod metav1.Object) uint64 {
	return MetadataEnvHash(container, func(env MetadataEnv) string {
		if env.Annotation {
			return pod.GetAnnotations()[env.Key]
		}
		return pod.GetLabels()[env.Key]
	})
}
