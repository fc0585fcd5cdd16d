// Package mergepatch creates JSON merge patches (RFC 7386) for the status of API objects. It has no client, so that the
// daemon and the sidecar share it.
package mergepatch

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

// Status returns a patch that changes a status from before to after, only for the object with this resource version: the
// API server answers with a conflict if the object has changed since.
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
