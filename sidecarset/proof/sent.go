package proof

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/foreign"
)

// sent is what the client has sent in a new pod, according to metadata.managedFields. The API server computes these
// before admission: whatever the client writes into them, they contain every field that it has sent, and no field that
// webhooks, policies and the API server have added. Nil means that the managed fields are missing or unreadable; then
// everything counts as sent.
type sent struct{ containers, volumes, annotations map[string]bool }

func readSent(entries []metav1.ManagedFieldsEntry) *sent {
	if len(entries) == 0 {
		return nil
	}
	s := &sent{containers: map[string]bool{}, volumes: map[string]bool{}, annotations: map[string]bool{}}
	for i := range entries {
		if !s.add(&entries[i]) {
			return nil
		}
	}
	return s
}

func (s *sent) add(entry *metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
		Spec struct {
			Containers     map[string]json.RawMessage `json:"f:containers"`
			InitContainers map[string]json.RawMessage `json:"f:initContainers"`
			Volumes        map[string]json.RawMessage `json:"f:volumes"`
		} `json:"f:spec"`
	}
	if foreign.Object(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	for key := range fields.Metadata.Annotations {
		s.annotations[strings.TrimPrefix(key, "f:")] = true
	}
	return addNames(s.containers, fields.Spec.Containers) && addNames(s.containers, fields.Spec.InitContainers) && addNames(s.volumes, fields.Spec.Volumes)
}

// addNames adds names from keys such as k:{"name":"app"}. It returns false if a key is unreadable.
func addNames(names map[string]bool, fields map[string]json.RawMessage) bool {
	for key := range fields {
		text, ok := strings.CutPrefix(key, "k:")
		if !ok {
			continue // the entry of the list itself
		}
		var element struct {
			Name string `json:"name"`
		}
		if foreign.JSON(text, &element) != nil {
			return false
		}
		names[element.Name] = true
	}
	return true
}

func (s *sent) container(name string) bool { return s == nil || s.containers[name] }

func (s *sent) volume(name string) bool { return s == nil || s.volumes[name] }

func (s *sent) annotation(key string) bool { return s == nil || s.annotations[key] }
