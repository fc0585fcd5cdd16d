package v1beta1

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A manager and a kruise-daemon hand over what the daemon cannot see of a pod in two forms: clients of v1alpha1 (OpenKruise
// up to 1.9) use annotations, clients of v1beta1 the status. The versions have one schema and are not converted, so an
// object can have either form, or both.

// ReadHandOff completes the status from the annotations. A value in the status takes precedence, an annotation that
// cannot be parsed is ignored.
func ReadHandOff(request *ContainerRecreateRequest) {
	if len(request.Status.ContainerStatusSnapshot) == 0 {
		var snapshot []ContainerStatusSnapshot
		if json.Unmarshal([]byte(request.Annotations[AnnotationSyncContainerStatuses]), &snapshot) == nil && len(snapshot) > 0 {
			request.Status.ContainerStatusSnapshot = snapshot
		}
	}
	if meta.IsStatusConditionTrue(request.Status.Conditions, ConditionPreRecreateGrace) {
		return
	}
	if since, err := time.Parse(time.RFC3339, request.Annotations[AnnotationUnreadyAcquired]); err == nil {
		SetPreRecreateGrace(&request.Status, since, MessagePreRecreateGrace)
	}
}

// SetPreRecreateGrace sets the condition by which a daemon learns that the pod has been not ready since a time.
func SetPreRecreateGrace(status *ContainerRecreateRequestStatus, since time.Time, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: ConditionPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(since),
		Reason: ReasonPreRecreateGrace, Message: message,
	})
}

// WriteHandOff returns the values of AnnotationSyncContainerStatuses and AnnotationUnreadyAcquired for a status; empty
// where the status has nothing to hand over.
func WriteHandOff(status ContainerRecreateRequestStatus) (snapshot, unreadyAcquired string, err error) {
	if len(status.ContainerStatusSnapshot) > 0 {
		value, err := json.Marshal(status.ContainerStatusSnapshot)
		if err != nil {
			return "", "", fmt.Errorf("encode containerStatusSnapshot: %w", err)
		}
		snapshot = string(value)
	}
	grace := meta.FindStatusCondition(status.Conditions, ConditionPreRecreateGrace)
	if grace != nil && grace.Status == metav1.ConditionTrue {
		unreadyAcquired = grace.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return snapshot, unreadyAcquired, nil
}
