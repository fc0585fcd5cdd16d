package plan

import (
	"fmt"
	"strings"
)

// Reason is a reason to refuse a change.
type Reason string

// The reasons.
const (
	// ReasonImmutableField means that the API server does not allow a change of this field of a running pod.
	ReasonImmutableField Reason = "ImmutableField"
	// ReasonQoSClass means that the new resources would change the QoS class of the pod.
	ReasonQoSClass Reason = "QoSClass"
	// ReasonInitContainer means that an init container has run and does not run again.
	ReasonInitContainer Reason = "InitContainer"
	// ReasonRestartPolicyNever means that with restartPolicy Never or OnFailure kubelet may not start the container
	// again: if the new image cannot be pulled, or if the container ends with an exit code for which its policy does
	// not restart it.
	ReasonRestartPolicyNever Reason = "RestartPolicyNever"
	// ReasonContainerEnded means that the container has ended, and its restart policy does not restart it.
	ReasonContainerEnded Reason = "ContainerEnded"
	// ReasonRemovedResource means that a request or limit would be removed. It can only be changed or added.
	ReasonRemovedResource Reason = "RemovedResource"
	// ReasonResource means that another resource than CPU and memory would be changed.
	ReasonResource Reason = "Resource"
	// ReasonStaticPod means that kubelet reads the pod from a file. The pod in the API server is a mirror.
	ReasonStaticPod Reason = "StaticPod"
	// ReasonInvalid means that the API server would not accept the value.
	ReasonInvalid Reason = "Invalid"
	// ReasonNoChange means that the pod already has all changes.
	ReasonNoChange Reason = "NoChange"
)

// Refusal is one change that cannot be made in place.
type Refusal struct {
	Container string // for ReasonContainerEnded
	Field     string // for example "spec.containers[0].env"; empty for the pod as a whole
	Reason    Reason
	Why       string
	Instead   string // another way to reach the goal
}

func (r Refusal) String() string {
	text := r.Why
	if r.Field != "" {
		text = r.Field + ": " + text
	}
	if r.Instead != "" {
		text += "; " + r.Instead
	}
	return text
}

// RefusedError says that an update cannot be made in place, and gives all reasons.
type RefusedError struct{ Refusals []Refusal }

func (e *RefusedError) Error() string {
	texts := make([]string, len(e.Refusals))
	for i, refusal := range e.Refusals {
		texts[i] = refusal.String()
	}
	return fmt.Sprintf("cannot be updated in place: %s", strings.Join(texts, "; "))
}

// Refused marks the error for commands, which exit with the code for an impossible change.
func (e *RefusedError) Refused() {}

// Has reports whether one of the refusals has this reason.
func (e *RefusedError) Has(reason Reason) bool {
	for _, refusal := range e.Refusals {
		if refusal.Reason == reason {
			return true
		}
	}
	return false
}

const recreate = "recreate the pod"
