package plan

import (
	"fmt"
	"strings"
)

// Reason is why a change is refused.
type Reason string

// The reasons.
const (
	// ReasonImmutableField: the API server does not allow a change of this field of a running pod.
	ReasonImmutableField Reason = "ImmutableField"
	// ReasonQoSClass: the new resources would give the pod another QoS class.
	ReasonQoSClass Reason = "QoSClass"
	// ReasonInitContainer: an init container that runs once; it is never run again.
	ReasonInitContainer Reason = "InitContainer"
	// ReasonRestartPolicyNever: with restartPolicy Never or OnFailure kubelet may not start the container again: when the new image
	// cannot be pulled, or when the container ends with an exit code that its policy does not restart it for.
	ReasonRestartPolicyNever Reason = "RestartPolicyNever"
	// ReasonContainerEnded: the container has ended, and its restart policy does not restart it.
	ReasonContainerEnded Reason = "ContainerEnded"
	// ReasonRemovedResource: a request or limit can be changed and added, but not removed.
	ReasonRemovedResource Reason = "RemovedResource"
	// ReasonResource: only CPU and memory can be changed.
	ReasonResource Reason = "Resource"
	// ReasonStaticPod: kubelet has the pod from a file; the API server's copy is a mirror.
	ReasonStaticPod Reason = "StaticPod"
	// ReasonInvalid: the value is none that the API server would accept.
	ReasonInvalid Reason = "Invalid"
	// ReasonNoChange: the pod already is as it is to be.
	ReasonNoChange Reason = "NoChange"
)

// Refusal is one change that cannot be made in place.
type Refusal struct {
	Container string // for ReasonContainerEnded
	Field     string // as "spec.containers[0].env"; empty for the pod as a whole
	Reason    Reason
	Why       string
	Instead   string // what leads to the goal nevertheless
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

// RefusedError says that an update cannot be made in place, with all the reasons.
type RefusedError struct{ Refusals []Refusal }

func (e *RefusedError) Error() string {
	texts := make([]string, len(e.Refusals))
	for i, refusal := range e.Refusals {
		texts[i] = refusal.String()
	}
	return fmt.Sprintf("cannot be updated in place: %s", strings.Join(texts, "; "))
}

// Has reports whether one of the refusals is for the reason.
func (e *RefusedError) Has(reason Reason) bool {
	for _, refusal := range e.Refusals {
		if refusal.Reason == reason {
			return true
		}
	}
	return false
}

const recreate = "recreate the pod"
