// Package mergepatch makes JSON merge patches (RFC 7386) for the status of API objects. It has no client, so that the
// daemon's and the sidecar's connections share it.
package mergepatch

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

// Status is the patch that changes a status from before to after, for the object of this resource version only: the
// API server answers with a conflict when the object has changed since.
func Status(resourceVersion string, before, after any) ([]byte, error) {
	type metadata struct {
		ResourceVersion string `json:"resourceVersion,omitempty"`
	}
	type object struct {
		Metadata metadata `json:"metadata"`
		Status   any      `json:"status"`
	}
	old, err := json.Marshal(object{Status: before})
	if err != nil {
		return nil, err
	}
	changed, err := json.Marshal(object{Metadata: metadata{resourceVersion}, Status: after})
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(old, changed, old)
}
