package crr

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/record"
)

// Draining reports whether a request under way drains its pod, which means that it has stopped no container yet because of
// unreadyGracePeriodSeconds, and until when, by the API server's clock. The time is zero if the manager has not made the pod not
// ready yet.
func Draining(request *Request) (until time.Time, draining bool) {
	strategy := request.Spec.Strategy
	if strategy == nil || strategy.UnreadyGracePeriodSeconds == nil || request.Status.Phase != v1beta1.ContainerRecreateRequestRecreating {
		return time.Time{}, false
	}
	request = record.Begun(request)
	v1beta1.ReadHandOff(request)
	for _, state := range request.Status.ContainerRecreateStates {
		if stopRecorded(state) || state.Phase != v1beta1.ContainerRecreateRequestPending {
			return time.Time{}, false
		}
	}
	condition := meta.FindStatusCondition(request.Status.Conditions, v1beta1.ConditionPreRecreateGrace)
	if condition == nil {
		return time.Time{}, true
	}
	return condition.LastTransitionTime.Add(time.Duration(*strategy.UnreadyGracePeriodSeconds) * time.Second), true
}

// DrainMessage says what a request waits for that drains its pod; "" for other requests.
func DrainMessage(request *Request) string {
	until, draining := Draining(request)
	switch {
	case !draining:
		return ""
	case until.IsZero():
		return "waiting for refit-manager to make the pod not ready"
	}
	return "draining until " + until.UTC().Format("15:04:05 UTC") + ": the pod is out of its Services before its first container is stopped"
}
