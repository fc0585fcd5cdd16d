package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/inplace/record"
)

// Cause is why a container was restarted last.
type Cause string

// Causes of a restart.
const (
	// CauseNone means that the first instance is running, or has not been started.
	CauseNone Cause = "NotRestarted"
	// CauseRequest means a ContainerRecreateRequest.
	CauseRequest Cause = "Requested"
	// CauseUpdate means an in-place update of the pod.
	CauseUpdate Cause = "UpdatedInPlace"
	// CauseExit means that the container has ended by itself, or that kubelet has stopped it.
	CauseExit Cause = "Ended"
	// CauseUnknown means that the previous instance is not known any more, and that no request for it is left.
	CauseUnknown Cause = "Unknown"
)

// Container explains the last restart of a container.
type Container struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Ready    bool   `json:"ready"`
	Restarts int32  `json:"restarts"`
	Cause    Cause  `json:"cause"`
	// Message is a sentence with the explanation.
	Message string `json:"message"`
	// Request, RequestedBy and Reason come from the ContainerRecreateRequest.
	Request     string `json:"request,omitempty"`
	RequestedBy string `json:"requestedBy,omitempty"`
	Reason      string `json:"reason,omitempty"`
	// Policy is the InPlaceUpdatePolicy that has updated the container.
	Policy string `json:"policy,omitempty"`
	// ExitCode of the previous instance, if it is known.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Previous reports whether the log of the previous instance can be read.
	Previous bool `json:"previous"`
	// Probes are the last failures of each kind of probe, from Events of kubelet.
	Probes []string `json:"probes,omitempty"`
	// Waiting is what the container waits for.
	Waiting string `json:"waiting,omitempty"`
}

// Explain returns, for each container of the pod or for the named ones, why it was restarted last. requests are the
// requests for the pod.
func Explain(pod *corev1.Pod, requests []v1beta1.ContainerRecreateRequest, names []string) []Container {
	var containers []Container
	requests = recordedStops(requests)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if len(names) == 0 || slices.Contains(names, status.Name) {
			containers = append(containers, explain(pod, requests, &status))
		}
	}
	return containers
}

func explain(pod *corev1.Pod, requests []v1beta1.ContainerRecreateRequest, status *corev1.ContainerStatus) Container {
	recorded, _ := record.Read(pod) // a record that cannot be read explains nothing
	previous := status.LastTerminationState.Terminated
	c := Container{Name: status.Name, State: state(status), Ready: status.Ready, Restarts: status.RestartCount, Previous: previous != nil, Waiting: waiting(pod, status)}
	request, stopping := lastRequest(requests, status), stoppedBy(requests, status)
	if previous != nil && stopping == nil && request != nil && stopped(request, status.Name) != previous.ContainerID {
		previous, c.Previous = nil, false // it is of an instance before the one that was stopped
	}
	if previous != nil {
		c.ExitCode = &previous.ExitCode
	}
	switch {
	case stopping != nil:
		c.requested(stopping, false)
	case updating(recorded, status):
		c.Cause, c.Message = CauseUpdate, "stopped by an in-place update of the pod; kubelet has not started the new instance yet"
	case request != nil:
		c.requested(request, status.State.Waiting == nil || crr.Completed(request))
	case status.RestartCount == 0 && previous == nil:
		c.Cause, c.Message = CauseNone, "has not been restarted"
	case updated(recorded, status):
		c.Cause, c.Message = CauseUpdate, "replaced by an in-place update of the pod"
	case forgotten(recorded, status):
		c.Cause = CauseUnknown
		c.Message = fmt.Sprintf("an earlier in-place update may have replaced the previous instance: the pod's record is of the update of %s; the previous instance %s",
			recorded.State.UpdateTimestamp.UTC().Format(time.RFC3339), ending(previous))
	case previous != nil:
		c.Cause, c.Message = CauseExit, "the previous instance "+ending(previous)
	default:
		c.Cause, c.Message = CauseUnknown, "the runtime has no previous instance any more, and no ContainerRecreateRequest for it is left"
	}
	return c
}

// lastRequest returns the request that has stopped the previous instance of a container; nil if none has.
func lastRequest(requests []v1beta1.ContainerRecreateRequest, status *corev1.ContainerStatus) *v1beta1.ContainerRecreateRequest {
	of := slices.Clone(requests)
	slices.SortStableFunc(of, func(a, b v1beta1.ContainerRecreateRequest) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Annotations[v1beta1.AnnotationAdmittedAt], a.Annotations[v1beta1.AnnotationAdmittedAt]))
	})
	for i := range of {
		id := stopped(&of[i], status.Name)
		switch previous := status.LastTerminationState.Terminated; {
		case id == "" || id == status.ContainerID || foundStopped(requests, &of[i], status.Name, id):
			continue
		case previous != nil && previous.ContainerID == id:
			return &of[i]
		// Else the stopped instance has been removed, to avoid kubelet's back-off; kubelet then reports the one before it,
		// or none.
		case previous == nil && startedDuring(&of[i], status):
			return &of[i]
		case previous != nil && previous.ContainerID != status.ContainerID && restartsBefore(&of[i], status.Name, id)+1 == status.RestartCount:
			return &of[i]
		}
	}
	return nil
}

// foundStopped reports whether another request had stopped that instance before this request began with it.
func foundStopped(requests []v1beta1.ContainerRecreateRequest, request *v1beta1.ContainerRecreateRequest, container, id string) bool {
	began := func(r v1beta1.ContainerRecreateRequest) bool {
		state, _ := crr.RecreateStateOf(&r, container)
		return state.ContainerID == id && state.StopBegan != nil
	}
	return !began(*request) && slices.ContainsFunc(requests, began)
}

// restartsBefore returns the restart count of the instance with this ID when the request was admitted; -1 if it is not
// known.
func restartsBefore(request *v1beta1.ContainerRecreateRequest, container, id string) int32 {
	for _, c := range request.Spec.Containers {
		if c.Name == container && c.StatusContext != nil && c.StatusContext.ContainerID == id {
			return c.StatusContext.RestartCount
		}
	}
	return -1
}

// clockDifference is the tolerance for the clocks of nodes and the API server.
const clockDifference = 5 * time.Second

// startedDuring reports whether the running instance was started while the request was in progress.
func startedDuring(request *v1beta1.ContainerRecreateRequest, status *corev1.ContainerStatus) bool {
	if status.State.Running == nil {
		return !crr.Completed(request)
	}
	started := status.State.Running.StartedAt
	if started.Add(clockDifference).Before(request.CreationTimestamp.Time) {
		return false
	}
	ended := request.Status.CompletionTime
	return ended == nil || started.Add(-clockDifference).Before(ended.Time)
}

func state(status *corev1.ContainerStatus) string {
	switch s := status.State; {
	case s.Running != nil:
		return "running since " + s.Running.StartedAt.UTC().Format(time.RFC3339)
	case s.Terminated != nil:
		return ending(s.Terminated)
	case s.Waiting != nil && s.Waiting.Reason != "":
		return "waiting: " + s.Waiting.Reason
	}
	return "waiting"
}

// ending returns how an instance has ended.
func ending(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	switch {
	case t.Reason == "OOMKilled":
		text = "was killed because its memory limit was exceeded (OOMKilled)"
	case t.ExitCode > 128 && t.ExitCode <= 128+64:
		text = fmt.Sprintf("was ended by signal %d (exit code %d)", t.ExitCode-128, t.ExitCode)
	case t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed":
		text += " (" + t.Reason + ")"
	}
	if !t.FinishedAt.IsZero() {
		text += " at " + t.FinishedAt.UTC().Format(time.RFC3339)
	}
	if message := requester.Printable(t.Message); message != "" {
		text += ": " + message
	}
	return text
}
