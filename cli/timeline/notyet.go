package timeline

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/kubelet"
)

const (
	notTaken     = "no daemon has taken the request"
	notBegun     = "the stop has not begun"
	beingStopped = "the container is being stopped"
	notReady     = "the pod's condition ContainersReady is not True"
)

// await marks an unknown moment of a request under way that has not happened yet, and says what comes before it.
func (r restart) await(m Moment) Moment {
	if crr.Completed(r.request) || r.pod == nil || m.Time != nil && m.What != whatReady {
		return m
	}
	why := ""
	switch m.What {
	case whatAccepted:
		why = r.untaken()
	case whatNotReady:
		why = cmp.Or(r.untaken(), crr.DrainMessage(r.request))
	case whatStopping:
		why = r.beforeStop(m.Container)
	case whatEnded, whatStarted:
		why = r.beforeNext(m.Container, m.What)
	case whatReady:
		why = r.beforeReady()
	case whatCompleted:
		why = "the request is under way"
	}
	if why == "" {
		return m
	}
	return Moment{What: m.What, Container: m.Container, Source: why, NotYet: true}
}

// untaken returns that no daemon has taken the request, or "".
func (r restart) untaken() string {
	if phase := r.request.Status.Phase; phase != "" && phase != v1beta1.ContainerRecreateRequestPending {
		return ""
	}
	return cmp.Or(r.request.Status.Message, notTaken)
}

// beforeStop returns what comes before the stop of a container, or "" if it has begun.
func (r restart) beforeStop(container string) string {
	if r.begun(container) {
		return ""
	}
	return cmp.Or(r.untaken(), crr.DrainMessage(r.request), notBegun)
}

// begun reports whether the request has begun to stop the container.
func (r restart) begun(container string) bool {
	if state, ok := crr.RecreateStateOf(record.Begun(r.request), container); ok && state.ContainerID != "" {
		return true
	}
	return r.stopping(container, time.Time{}).Time != nil
}

// beforeNext returns what comes before the end of the stopped instance, or before the start of the next one; "" if that has
// happened.
func (r restart) beforeNext(container, what string) string {
	if !r.begun(container) {
		return notBegun
	}
	status := kubelet.StatusOf(r.pod, container)
	switch {
	case status == nil:
		return ""
	case status.State.Running != nil && status.ContainerID == r.stopped(container):
		return beingStopped
	case what == whatStarted && r.notStarted(status):
		return "kubelet has not started the container again"
	}
	return ""
}

// notStarted reports whether the pod's status shows no instance after the stopped one.
func (r restart) notStarted(status *corev1.ContainerStatus) bool {
	if status.State.Running != nil {
		return status.ContainerID == r.stopped(status.Name)
	}
	for _, c := range r.request.Spec.Containers {
		if c.Name == status.Name && c.StatusContext != nil {
			return status.RestartCount <= c.StatusContext.RestartCount
		}
	}
	return status.ContainerID == "" || status.ContainerID == r.stopped(status.Name)
}

// beforeReady returns what comes before the containers of the pod are ready again, or "" if they are.
func (r restart) beforeReady() string {
	for _, c := range r.request.Spec.Containers {
		if !r.begun(c.Name) {
			return "the stop of container " + c.Name + " has not begun"
		}
		if status := kubelet.StatusOf(r.pod, c.Name); status != nil && r.notStarted(status) {
			return "container " + c.Name + " has not been started again"
		}
	}
	if ready := kubelet.Condition(&r.pod.Status, corev1.ContainersReady); ready == nil || ready.Status != corev1.ConditionTrue {
		return notReady
	}
	return ""
}
