package proof

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sent is what the client that creates a pod has sent, by metadata.managedFields. The API server computes these before admission:
// whatever the client writes into them itself, they have every field that it sends, and none that webhooks, policies and the API
// server add. Nil stands for managed fields that are missing or cannot be read; then everything counts as sent.
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
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	for key := range fields.Metadata.Annotations {
		s.annotations[strings.TrimPrefix(key, "f:")] = true
	}
	return addNames(s.containers, fields.Spec.Containers) && addNames(s.containers, fields.Spec.InitContainers) && addNames(s.volumes, fields.Spec.Volumes)
}

// addNames reads keys such as k:{"name":"app"}; false if one cannot be read.
func addNames(names map[string]bool, fields map[string]json.RawMessage) bool {
	for key := range fields {
		text, ok := strings.CutPrefix(key, "k:")
		if !ok {
			continue // the list itself
		}
		var element struct {
			Name string `json:"name"`
		}
		if json.Unmarshal([]byte(text), &element) != nil {
			return false
		}
		names[element.Name] = true
	}
	return true
}

func (s *sent) container(name string) bool { return s == nil || s.containers[name] }

func (s *sent) volume(name string) bool { return s == nil || s.volumes[name] }

func (s *sent) annotation(key string) bool { return s == nil || s.annotations[key] }
