package v1beta1

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A manager and a kruise-daemon exchange what the daemon cannot read of a pod in two forms: clients of v1alpha1 (OpenKruise
// up to 1.9) use annotations, clients of v1beta1 the status. The versions have the same schema and are not converted, so an
// object can have either form, or both.

// Limits on the annotations, which others may have written: a pod has at most some tens of containers, and times are
// computed in nanoseconds, which end in 2262.
const (
	maxHandOff = 64 << 10 // bytes
	minYear    = 1970
	maxYear    = 2200
)

// ReadHandOff completes the status from the annotations. A value in the status has precedence. An annotation that cannot be
// parsed or exceeds the limits is ignored.
func ReadHandOff(request *ContainerRecreateRequest) {
	if len(request.Status.ContainerStatusSnapshot) == 0 {
		var snapshot []ContainerStatusSnapshot
		if text := request.Annotations[AnnotationSyncContainerStatuses]; len(text) <= maxHandOff && json.Unmarshal([]byte(text), &snapshot) == nil && len(snapshot) > 0 {
			request.Status.ContainerStatusSnapshot = snapshot
		}
	}
	if meta.IsStatusConditionTrue(request.Status.Conditions, ConditionPreRecreateGrace) {
		return
	}
	since, err := time.Parse(time.RFC3339, request.Annotations[AnnotationUnreadyAcquired])
	if year := since.UTC().Year(); err == nil && year >= minYear && year <= maxYear {
		SetPreRecreateGrace(&request.Status, since, MessagePreRecreateGrace)
	}
}

// SetPreRecreateGrace sets the condition that tells a daemon since when the pod has been not ready.
func SetPreRecreateGrace(status *ContainerRecreateRequestStatus, since time.Time, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: ConditionPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(since),
		Reason: ReasonPreRecreateGrace, Message: message,
	})
}

// WriteHandOff returns the values of AnnotationSyncContainerStatuses and AnnotationUnreadyAcquired for a status; empty if
// the status lacks them.
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
