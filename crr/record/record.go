// Package record stores the IDs of the containers that a request stops in its annotation AnnotationInstances, for CRDs
// that have no field for them, such as OpenKruise's.
package record

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// Apply returns the request with the container IDs of AnnotationInstances copied into its container states, as if the
// API server had stored them there. A request without the annotation is returned unchanged. No argument is changed.
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

// Recorded is the content of AnnotationInstances.
type Recorded map[string]string

// stopBeganKey returns the key of the time when the stop of a container began. Container names have no slash.
func stopBeganKey(container string) string { return container + "/stopBegan" }

// Complete fills in the fields of a container state that the API server has dropped.
func (r Recorded) Complete(state *v1beta1.ContainerRecreateRequestRecreateState) {
	id := r[state.Name]
	if state.ContainerID != "" || id == "" {
		return
	}
	state.ContainerID = id
	if at, err := foreign.Time(r[stopBeganKey(state.Name)]); err == nil {
		state.StopBegan = new(metav1.NewMicroTime(at))
	}
}

// Begun returns the request like Apply does. If work on a container has begun and no instance is recorded, Begun sets
// the instance at admission. refit-sidecar uses it because it may not write the annotation: it stops another instance
// only if the API server has stored the ID in the container state.
func Begun(request *v1beta1.ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	out := Apply(request).DeepCopy()
	for i := range out.Status.ContainerRecreateStates {
		state := &out.Status.ContainerRecreateStates[i]
		// A container that is being stopped is Pending, like a container that waits for its turn. Only the former has a
		// message.
		begun := state.Phase == v1beta1.ContainerRecreateRequestRecreating || state.Phase == v1beta1.ContainerRecreateRequestPending && state.Message != ""
		if state.ContainerID != "" || !begun {
			continue
		}
		state.ContainerID = AtAdmission(out, state.Name)
	}
	return out
}

// AtAdmission returns the ID of the instance that a container had when the request was admitted, or "" if it is not known.
func AtAdmission(request *v1beta1.ContainerRecreateRequest, container string) string {
	for _, c := range request.Spec.Containers {
		if c.Name == container && c.StatusContext != nil {
			return c.StatusContext.ContainerID
		}
	}
	return ""
}

// Ordered returns the ID of the instance whose stop has been ordered, or "" if none has. A kruise-daemon records no
// instance: it stops the one at admission, and at a deadline its status does not show whether a stop is in progress.
func Ordered(request *v1beta1.ContainerRecreateRequest, state v1beta1.ContainerRecreateRequestRecreateState) string {
	if state.ContainerID != "" || Pruned(request) || meta.IsStatusConditionTrue(request.Status.Conditions, v1beta1.ConditionAccepted) {
		return state.ContainerID
	}
	return AtAdmission(request, state.Name)
}

// Missing returns the value that the annotation AnnotationInstances needs after a write of the status, and true if the
// API server has dropped container IDs that were in the written status and are not in the annotation. Nothing may be
// done to a container whose instance is not recorded. It returns false if the record is complete.
func Missing(stored *v1beta1.ContainerRecreateRequest, written v1beta1.ContainerRecreateRequestStatus) (string, bool) {
	instances, recorded := Recorded{}, Instances(stored)
	for _, state := range written.ContainerRecreateStates {
		if state.ContainerID == "" || storedContainerID(stored, state.Name) == state.ContainerID && recorded[state.Name] == "" {
			continue
		}
		instances[state.Name] = state.ContainerID
		if state.StopBegan != nil {
			instances[stopBeganKey(state.Name)] = state.StopBegan.UTC().Format(metav1.RFC3339Micro)
		}
	}
	if covers(recorded, instances) {
		return "", false
	}
	text, err := json.Marshal(instances)
	return string(text), err == nil // a map of strings can always be encoded
}

// covers reports whether everything in wanted is recorded, and no other time of the beginning of a stop.
func covers(recorded, wanted Recorded) bool {
	for key, id := range wanted {
		if recorded[key] != id || recorded[stopBeganKey(key)] != wanted[stopBeganKey(key)] {
			return false
		}
	}
	return true
}

// Instances returns the recorded container IDs by container name, and when their stops began. It is empty if the
// annotation is missing or malformed.
func Instances(request *v1beta1.ContainerRecreateRequest) Recorded {
	text, ok := request.Annotations[v1beta1.AnnotationInstances]
	if !ok {
		return nil
	}
	var instances Recorded
	if err := foreign.JSON(text, &instances); err != nil {
		return nil
	}
	return instances
}

// storedContainerID returns the container ID that the API server has stored in the status.
func storedContainerID(request *v1beta1.ContainerRecreateRequest, container string) string {
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
