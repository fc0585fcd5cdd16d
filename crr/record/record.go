// Package record keeps the container IDs that a request is to stop where the CRD has no field for them, as OpenKruise's: in
// the annotation AnnotationInstances of the request.
package record

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Apply returns the request with the container IDs of AnnotationInstances put into its container states, as if the
// API server had stored them there. A request without the annotation is returned as it is; no argument is changed.
func Apply(request *v1beta1.ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	recorded := Instances(request)
	if len(recorded) == 0 {
		return request
	}
	out := request.DeepCopy()
	for i := range out.Status.ContainerRecreateStates {
		recorded.Complete(&out.Status.ContainerRecreateStates[i])
	}
	return out
}

// Recorded is what AnnotationInstances has.
type Recorded map[string]string

// began is the key of the time at which the stop of a container began; no name of a container has a slash.
func began(container string) string { return container + "/stopBegan" }

// Complete puts into the state of a container what the API server has dropped.
func (r Recorded) Complete(state *v1beta1.ContainerRecreateRequestRecreateState) {
	id := r[state.Name]
	if state.ContainerID != "" || id == "" {
		return
	}
	state.ContainerID = id
	if at, err := time.Parse(metav1.RFC3339Micro, r[began(state.Name)]); err == nil {
		state.StopBegan = new(metav1.NewMicroTime(at))
	}
}

// Begun returns the request as Apply does, and where work on a container has begun and no instance is recorded, it is the one at
// admission. That is for refit-sidecar, which may not write the annotation: it stops any other instance only if the API
// server has stored its ID in the state.
func Begun(request *v1beta1.ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	out := Apply(request).DeepCopy()
	for i := range out.Status.ContainerRecreateStates {
		state := &out.Status.ContainerRecreateStates[i]
		// A container that is being stopped is Pending, as one that waits for its turn, which has no message.
		begun := state.Phase == v1beta1.ContainerRecreateRequestRecreating || state.Phase == v1beta1.ContainerRecreateRequestPending && state.Message != ""
		if state.ContainerID != "" || !begun {
			continue
		}
		state.ContainerID = AtAdmission(out, state.Name)
	}
	return out
}

// AtAdmission is the instance that a container had when the request was admitted; empty if that is not known.
func AtAdmission(request *v1beta1.ContainerRecreateRequest, container string) string {
	for _, c := range request.Spec.Containers {
		if c.Name == container && c.StatusContext != nil {
			return c.StatusContext.ContainerID
		}
	}
	return ""
}

// Ordered is the instance whose stop has been ordered; empty if none has. A kruise-daemon records no instance: it stops the one at
// admission, and at a deadline it leaves open whether it is doing so.
func Ordered(request *v1beta1.ContainerRecreateRequest, state v1beta1.ContainerRecreateRequestRecreateState) string {
	if state.ContainerID != "" || Pruned(request) || meta.IsStatusConditionTrue(request.Status.Conditions, v1beta1.ConditionAccepted) {
		return state.ContainerID
	}
	return AtAdmission(request, state.Name)
}

// Missing returns the value that AnnotationInstances of a request needs after a write of its status: the API
// server has dropped container IDs that were in the written status, and that the annotation does not have. Nothing may
// be done about a container whose instance is not recorded. It is false if the record is complete.
func Missing(stored *v1beta1.ContainerRecreateRequest, written v1beta1.ContainerRecreateRequestStatus) (string, bool) {
	instances, recorded := Recorded{}, Instances(stored)
	for _, state := range written.ContainerRecreateStates {
		if state.ContainerID == "" || kept(stored, state.Name) == state.ContainerID && recorded[state.Name] == "" {
			continue
		}
		instances[state.Name] = state.ContainerID
		if state.StopBegan != nil {
			instances[began(state.Name)] = state.StopBegan.UTC().Format(metav1.RFC3339Micro)
		}
	}
	if covers(recorded, instances) {
		return "", false
	}
	text, err := json.Marshal(instances)
	return string(text), err == nil // a map of strings can always be encoded
}

// covers reports whether all of what is to be recorded is, and no other beginning of a stop.
func covers(recorded, wanted Recorded) bool {
	for key, id := range wanted {
		if recorded[key] != id || recorded[began(key)] != wanted[began(key)] {
			return false
		}
	}
	return true
}

// Instances are the container IDs by the names of the containers, and when their stops began; empty where the annotation is missing or malformed.
func Instances(request *v1beta1.ContainerRecreateRequest) Recorded {
	text, ok := request.Annotations[v1beta1.AnnotationInstances]
	if !ok {
		return nil
	}
	var instances Recorded
	if err := json.Unmarshal([]byte(text), &instances); err != nil {
		return nil
	}
	return instances
}

// kept is the container ID that the API server has stored in the status.
func kept(request *v1beta1.ContainerRecreateRequest, container string) string {
	for _, state := range request.Status.ContainerRecreateStates {
		if state.Name == container {
			return state.ContainerID
		}
	}
	return ""
}

// Pruned reports whether the request is stored under a CRD that drops the container IDs of its states.
func Pruned(request *v1beta1.ContainerRecreateRequest) bool {
	_, ok := request.Annotations[v1beta1.AnnotationInstances]
	return ok
}
