package crr

import (
	"encoding/json"

	"github.com/refit-project/refit/api/v1beta1"
)

// WithRecord returns the request with the container IDs of AnnotationInstances put into its container states, as if the
// API server had stored them there. A request without the annotation is returned as it is; no argument is changed.
func WithRecord(request *Request) *Request {
	recorded := record(request)
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

// MissingRecord returns the value that AnnotationInstances of a request needs after a write of its status: the API
// server has dropped container IDs that were in the written status, and that the annotation does not have. Nothing may
// be done about a container whose instance is not recorded. It is false if the record is complete.
func MissingRecord(stored *Request, written Status) (string, bool) {
	instances, missing := map[string]string{}, false
	recorded := record(stored)
	for _, state := range written.ContainerRecreateStates {
		kept, _ := RecreateStateOf(stored, state.Name)
		if state.ContainerID == "" || kept.ContainerID == state.ContainerID && recorded[state.Name] == "" {
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

// record is empty where the annotation is missing or malformed.
func record(request *v1beta1.ContainerRecreateRequest) map[string]string {
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

// prunes reports whether the request is stored under a CRD that drops the container IDs of its states.
func prunes(request *v1beta1.ContainerRecreateRequest) bool {
	_, ok := request.Annotations[v1beta1.AnnotationInstances]
	return ok
}
