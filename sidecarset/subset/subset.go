// Package subset compares the desired and the actual parts of an API object. Text is compared as text, and quantities
// only where the API has quantities, because users may write anything into the objects.
package subset

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
)

// Covers reports whether the JSON of a container or volume has everything in wanted. Additional fields may come from
// the API server's defaults and from other webhooks; the caller must know that nobody else has written them. Lists of
// objects with a key are compared by the key.
func Covers(raw json.RawMessage, wanted any) bool {
	has, ok := decode(raw)
	want, decoded := decode(must.JSON(wanted))
	return ok && decoded && contains(place{}, has, want)
}

// Equal reports whether the JSON of a container or volume equals a value, after the API server's defaults have been
// added to both. Additional fields are differences, even if Refit does not know them.
func Equal(raw json.RawMessage, wanted any) bool {
	has, ok := decode(raw)
	want, decoded := decode(must.JSON(wanted))
	if !ok || !decoded {
		return false
	}
	complete(place{}, has)
	complete(place{}, want)
	return equal(place{}, has, want)
}

func decode(raw []byte) (value any, ok bool) {
	value, err := foreign.Value(raw)
	return value, err == nil
}

// place is the position of a value in an object: its field, the field that contains that one, and the next outer one.
type place struct{ field, parent, grandparent string }

func (p place) of(field string) place { return place{field, p.field, p.parent} }

// quantity reports whether the API has quantities at this place.
func (p place) quantity() bool {
	switch {
	case p.grandparent == "resources":
		return p.parent == "limits" || p.parent == "requests"
	case p.field == "sizeLimit":
		return p.parent == "emptyDir"
	}
	return p.field == "divisor" && p.parent == "resourceFieldRef"
}

func (p place) sameText(has, want string) bool {
	return has == want || p.quantity() && sameQuantity(has, want)
}

func equal(at place, has, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := has.(map[string]any)
		if !ok || len(object) != len(want) {
			return false
		}
		for key, value := range want {
			inner, ok := object[key]
			if !ok || !equal(at.of(key), inner, value) {
				return false
			}
		}
		return true
	case []any:
		list, ok := has.([]any)
		return ok && slices.EqualFunc(list, want, func(a, b any) bool { return equal(at, a, b) })
	case string:
		text, ok := has.(string)
		return ok && at.sameText(text, want)
	}
	return reflect.DeepEqual(has, want)
}

// keys are the keys by which elements of lists are found; the first one that the elements have is used.
var keys = []string{"mountPath", "devicePath", "name", "containerPort", "key", "path"}

func contains(at place, has, want any) bool {
	switch want := want.(type) {
	case nil:
		return true // grpc: {service: null}, which the API server completes
	case map[string]any:
		object, ok := has.(map[string]any)
		if !ok {
			return false // emptyDir: {} is not the same as nothing
		}
		for key, value := range want {
			if inner, ok := value.(map[string]any); ok && len(inner) == 0 && key == "resources" {
				continue // a struct that is always encoded, even if it is empty
			}
			if !contains(at.of(key), object[key], value) {
				return false
			}
		}
		return true
	case []any:
		list, ok := has.([]any)
		return ok && containsAll(at, list, want)
	case string:
		text, ok := has.(string)
		return ok && at.sameText(text, want)
	}
	return reflect.DeepEqual(has, want)
}

func containsAll(at place, has, want []any) bool {
	key := keyOf(want)
	if key == "" {
		return slices.EqualFunc(has, want, func(a, b any) bool { return contains(at, a, b) })
	}
	for _, value := range want {
		object, ok := value.(map[string]any)
		// Of several variables with one name, the last one is effective.
		if !ok || !contains(at, last(has, key, object[key]), value) {
			return false
		}
	}
	return true
}

// last returns the last element of a list whose key has this value, or nil.
func last(list []any, key string, value any) any {
	for _, element := range slices.Backward(list) {
		if object, ok := element.(map[string]any); ok && reflect.DeepEqual(object[key], value) {
			return element
		}
	}
	return nil
}

// keyOf returns a key that all elements have with distinct values, or "".
func keyOf(list []any) string {
	for _, key := range keys {
		seen := map[any]bool{}
		for _, element := range list {
			object, ok := element.(map[string]any)
			if !ok {
				return ""
			}
			switch value := object[key].(type) {
			case string, json.Number:
				seen[value] = true
			}
		}
		if len(list) > 0 && len(seen) == len(list) {
			return key
		}
	}
	return ""
}
