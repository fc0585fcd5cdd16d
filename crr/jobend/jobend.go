// Package jobend decides about pods whose main containers have ended while sidecars still run, for example pods of
// Jobs: which sidecars to stop, and how. It ignores native sidecars, because kubelet stops them.
package jobend

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/kubelet"
)

// keep is how long a request is kept after it has completed, in seconds. A sidecar that still runs then, for example
// because kubelet has restarted it after a failure, is stopped by another request.
const keep = 60

// Decision is what to do for a pod, in the order of the fields. The zero value means nothing.
type Decision struct {
	// Status marks the work of the pod as done: its containers may then be stopped although kubelet does not restart them.
	Status *corev1.PodStatus
	// Images maps containers to the images to set. The program of such an image exits at once.
	Images map[string]string
	// Request stops sidecars. It may already exist.
	Request *v1beta1.ContainerRecreateRequest
}

// Due reports whether sidecars of the pod have to be stopped. It only reads fields that the manager's cache keeps.
func Due(pod *corev1.Pod) bool { return len(runningSidecars(pod)) > 0 }

// Next returns what to do for the pod now. virtual says that the pod's node has no daemon.
func Next(pod *corev1.Pod, virtual bool, now time.Time) Decision {
	var stop []v1beta1.ContainerRecreateRequestContainer
	images := map[string]string{}
	for _, c := range runningSidecars(pod) {
		switch asked, image := terminationEnv(c); {
		case asked && !virtual:
			stop = append(stop, v1beta1.ContainerRecreateRequestContainer{Name: c.Name})
		case image != "" && image != c.Image:
			images[c.Name] = image
		}
	}
	var d Decision
	if len(stop)+len(images) == 0 {
		return d
	}
	if !podrules.SidecarTerminated(pod) {
		d.Status = markedStatus(pod, now)
	}
	if len(images) > 0 {
		d.Images = images
	}
	if len(stop) > 0 {
		d.Request = request(pod, stop)
	}
	return d
}

// runningSidecars returns the sidecars that have to be stopped and still run. It returns none while a main container
// has not ended for good.
func runningSidecars(pod *corev1.Pod) []*corev1.Container {
	if pod.DeletionTimestamp != nil || crr.PodEnded(pod) || pod.Spec.NodeName == "" || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == "" {
		return nil
	}
	var sidecars []*corev1.Container
	ended := 0
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status := kubelet.StatusIn(pod.Status.ContainerStatuses, c.Name)
		final := kubelet.RestartPolicyOf(pod, c.Name).Final(status)
		switch asked, image := terminationEnv(c); {
		case !asked && image == "" && !final:
			return nil
		case !asked && image == "":
			ended++
		case !final && status != nil && status.ContainerID != "":
			sidecars = append(sidecars, c)
		}
	}
	if ended == 0 {
		return nil // all are sidecars
	}
	return sidecars
}

// terminationEnv returns what the environment of a container says about stopping it: whether it was requested, and by
// which image.
func terminationEnv(c *corev1.Container) (asked bool, image string) {
	for _, e := range c.Env {
		switch e.Name {
		case v1beta1.EnvTerminateSidecar:
			asked = asked || strings.EqualFold(e.Value, "true")
		case v1beta1.EnvTerminateSidecarWithImage:
			image = e.Value
		}
	}
	return asked, image
}

func markedStatus(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	status := pod.Status.DeepCopy()
	isMark := func(c corev1.PodCondition) bool { return c.Type == v1beta1.ConditionSidecarTerminated } // one that is not True
	status.Conditions = append(slices.DeleteFunc(status.Conditions, isMark), corev1.PodCondition{
		Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
		Reason: "MainContainersEnded", Message: "the main containers have ended, and the sidecars are ended",
	})
	return status
}

func request(pod *corev1.Pod, containers []v1beta1.ContainerRecreateRequestContainer) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: v1beta1.PrefixSidecarTermination + string(pod.UID),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		Annotations:     map[string]string{v1beta1.AnnotationReason: "the main containers of the pod have ended"},
	}}
	r.Spec.PodName, r.Spec.Containers = pod.Name, containers
	r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: v1beta1.FailurePolicyIgnore, ForceRecreate: true}
	r.Spec.TTLSecondsAfterFinished = new(int32(keep))
	return r
}

// Replace returns a copy of the pod with the images of a decision.
func Replace(pod *corev1.Pod, images map[string]string) *corev1.Pod {
	changed := pod.DeepCopy()
	for i := range changed.Spec.Containers {
		if image, ok := images[changed.Spec.Containers[i].Name]; ok {
			changed.Spec.Containers[i].Image = image
		}
	}
	return changed
}
