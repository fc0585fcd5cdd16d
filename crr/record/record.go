// Package record keeps the container IDs that a request is to stop where the CRD has no field for them, as OpenKruise's: in
// the annotation AnnotationInstances of the request.
package record

import (
	"encoding/json"

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
		state := &out.Status.ContainerRecreateStates[i]
		if state.ContainerID == "" {
			state.ContainerID = recorded[state.Name]
		}
	}
	return out
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

// Missing returns the value that AnnotationInstances of a request needs after a write of its status: the API
// server has dropped container IDs that were in the written status, and that the annotation does not have. Nothing may
// be done about a container whose instance is not recorded. It is false if the record is complete.
func Missing(stored *v1beta1.ContainerRecreateRequest, written v1beta1.ContainerRecreateRequestStatus) (string, bool) {
	instances, missing := map[string]string{}, false
	recorded := Instances(stored)
	for _, state := range written.ContainerRecreateStates {
		if state.ContainerID == "" || kept(stored, state.Name) == state.ContainerID && recorded[state.Name] == "" {
			continue
		}
		instances[state.Name] = state.ContainerID
		missing = missing || recorded[state.Name] != state.ContainerID
	}
	if !missing {
		return "", false
	}
	text, err := json.Marshal(instances)
	return string(text), err == nil // a map of strings can always be encoded
}

// Instances are the container IDs by the names of the containers; empty where the annotation is missing or malformed.
func Instances(request *v1beta1.ContainerRecreateRequest) map[string]string {
	text, ok := request.Annotations[v1beta1.AnnotationInstances]
	if !ok {
		return nil
	}
	var instances map[string]string
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
