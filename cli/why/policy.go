package why

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// AddUpdate adds to containers that an in-place update has replaced when that was, with which images, and by which policy. policy is the
// one of the workload of the pod, or nil.
func AddUpdate(containers []Container, pod *corev1.Pod, policy *v1alpha1.InPlaceUpdatePolicy) {
	recorded, err := record.Read(pod)
	if err != nil || recorded == nil {
		return
	}
	for i := range containers {
		c := &containers[i]
		if c.Cause != CauseUpdate || !names(recorded, c.Name) { // an Event of kubelet can be of an update before the recorded one
			continue
		}
		if policy != nil && recorded.State.Revision != "" && recorded.SidecarSet == "" {
			c.Policy = policy.Name
			c.Message += ", by InPlaceUpdatePolicy " + policy.Name
		}
		if at := recorded.State.UpdateTimestamp; !at.IsZero() {
			c.Message += ", of " + at.UTC().Format(time.RFC3339)
		}
		was, is := recorded.Extension().Instances[c.Name].Image, kubelet.Container(&pod.Spec, c.Name)
		if was != "" && is != nil && was != is.Image {
			c.Message += fmt.Sprintf(": image %s -> %s", was, is.Image)
		}
	}
}

// names reports whether the recorded update has replaced this container.
func names(recorded *record.Record, container string) bool {
	_, last := recorded.State.LastContainerStatuses[container]
	_, restarted := recorded.Extension().Instances[container]
	return last || restarted
}

// updateOf describes an update in progress of the workload of a pod; empty if there is none.
func updateOf(pod *corev1.Pod, policy *v1alpha1.InPlaceUpdatePolicy) string {
	if policy == nil || meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionReady) {
		return ""
	}
	for _, failure := range policy.Status.Failures {
		if failure.Pod == pod.Name {
			return fmt.Sprintf("InPlaceUpdatePolicy %s: the update of this pod has failed: %s: %s", policy.Name, failure.Reason, failure.Message)
		}
	}
	of := cmp.Or(meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing), &metav1.Condition{Reason: "not seen by refit-manager yet"})
	if accepted := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAccepted); accepted != nil && accepted.Status == metav1.ConditionFalse {
		of = accepted
	}
	status := &policy.Status
	return fmt.Sprintf("InPlaceUpdatePolicy %s: %d of %d pods have the template and are available: %s: %s", policy.Name, status.UpdatedReadyPods, status.MatchedPods, of.Reason, of.Message)
}
