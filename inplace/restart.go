package inplace

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
)

// restartLimit limits a restart, and is how long its request is kept after its end, in seconds.
const restartLimit = 300

// maxPrefix limits the beginning of the name of a request: a name has at most 253 bytes.
const maxPrefix = 200

// RestartRequest returns the ContainerRecreateRequest for a StepRestart. Its name is derived from the instance and begins with
// a prefix, so that one caller restarts no instance twice. The request is refused as a conflict if the instance has been replaced
// meanwhile. The daemon of the node carries it out.
func RestartRequest(prefix string, pod *corev1.Pod, instance Instance) *v1beta1.ContainerRecreateRequest {
	hash := fnv.New64a()
	fmt.Fprint(hash, pod.UID, instance.Container, instance.ContainerID)
	request := &v1beta1.ContainerRecreateRequest{}
	request.Namespace, request.Name = pod.Namespace, fmt.Sprintf("%s-%x", prefix[:min(len(prefix), maxPrefix)], hash.Sum64())
	request.Annotations = map[string]string{v1beta1.AnnotationExpectedInstances: string(must.JSON(map[string]string{instance.Container: instance.ContainerID}))}
	request.Spec = v1beta1.ContainerRecreateRequestSpec{
		PodName:                 pod.Name,
		Containers:              []v1beta1.ContainerRecreateRequestContainer{{Name: instance.Container}},
		ActiveDeadlineSeconds:   new(int64(restartLimit)),
		TTLSecondsAfterFinished: new(int32(restartLimit)),
	}
	return request
}
