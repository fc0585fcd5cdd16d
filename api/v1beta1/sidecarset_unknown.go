package v1beta1

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// UnknownFields are fields of an object, by name, that a Go type does not have because they are newer.
type UnknownFields map[string]json.RawMessage

// Append adds the fields, in the order of their names, to an object in JSON that has none of them.
func (f UnknownFields) Append(object []byte) ([]byte, error) {
	if len(f) == 0 {
		return object, nil
	}
	added, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	object, added = bytes.TrimSpace(object), bytes.TrimPrefix(added, []byte("{"))
	if bytes.Equal(object, []byte("{}")) {
		return append([]byte("{"), added...), nil
	}
	return slices.Concat(bytes.TrimSuffix(object, []byte("}")), []byte(","), added), nil
}

// UnmarshalJSON keeps unknown fields of the container in Unknown.
func (c *SidecarContainer) UnmarshalJSON(text []byte) error {
	type plain SidecarContainer // without this method
	var fields UnknownFields
	if err := utiljson.Unmarshal(text, (*plain)(c)); err != nil {
		return err
	}
	if err := utiljson.Unmarshal(text, &fields); err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return containerFields()[name] })
	if c.Unknown = nil; len(fields) > 0 {
		c.Unknown = fields
	}
	return nil
}

// MarshalJSON adds the fields in Unknown after the known ones.
func (c SidecarContainer) MarshalJSON() ([]byte, error) {
	type plain SidecarContainer
	text, err := json.Marshal(plain(c))
	if err != nil {
		return nil, err
	}
	return c.Unknown.Append(text)
}

// containerFields are the names of the fields of SidecarContainer.
var containerFields = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	addFields(reflect.TypeFor[SidecarContainer](), names)
	return names
})

func addFields(object reflect.Type, names map[string]bool) {
	for field := range object.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && options == "inline":
			addFields(field.Type, names)
		case name != "-":
			names[name] = true
		}
	}
}
