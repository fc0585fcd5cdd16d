// Package subset compares what an API object is to have with what it has. Text is compared as text, and quantities only where the
// API has quantities: the objects come from people who may write anything.
package subset

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// Covers reports whether JSON of a container or volume has everything of a value. What it has more comes from the API server's
// defaults and from other webhooks: whoever calls it knows that nobody else has written it. Lists of objects with a key are
// compared by it.
func Covers(raw json.RawMessage, wanted any) bool {
	has, ok := decode(raw)
	want, decoded := decode(encode(wanted))
	return ok && decoded && contains(place{}, has, want)
}

// Equal reports whether JSON of a container or volume is a value, when the API server's defaults have been added to both. What
// it has more is a difference, also of fields that Refit does not know.
func Equal(raw json.RawMessage, wanted any) bool {
	has, ok := decode(raw)
	want, decoded := decode(encode(wanted))
	if !ok || !decoded {
		return false
	}
	complete(place{}, has)
	complete(place{}, want)
	return equal(place{}, has, want)
}

func encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // types of the API can always be encoded
	}
	return raw
}

// decode keeps numbers as they are written: a float64 cannot hold every user ID.
func decode(raw []byte) (value any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return value, decoder.Decode(&value) == nil
}

// place is where in an object a value is: its field, the field that has that one, and the next.
type place struct{ field, parent, grandparent string }

func (p place) of(field string) place { return place{field, p.field, p.parent} }

// quantity reports whether the API has quantities there.
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

// keys by which elements of lists are found, the first that they have.
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
				continue // a struct that is encoded even if it is empty
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
		// Of several variables with one name, the last counts.
		if !ok || !contains(at, last(has, key, object[key]), value) {
			return false
		}
	}
	return true
}

// last is the last element of a list whose key has this value; nil if there is none.
func last(list []any, key string, value any) any {
	for _, element := range slices.Backward(list) {
		if object, ok := element.(map[string]any); ok && reflect.DeepEqual(object[key], value) {
			return element
		}
	}
	return nil
}

// keyOf is the key that all elements have, and no two with the same value; empty if there is none.
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
