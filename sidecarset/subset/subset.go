// Package subset compares what an API object is to have with what it has.
package subset

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Covers reports whether JSON has everything of a value. What it has more comes from the API server's defaults and from
// other webhooks. Lists of objects with a key are compared by it.
func Covers(raw json.RawMessage, wanted any) bool {
	var has, want any
	if json.Unmarshal(raw, &has) != nil || json.Unmarshal(encode(wanted), &want) != nil {
		return false
	}
	return contains(has, want)
}

func encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // types of the API can always be encoded
	}
	return raw
}

// keys by which elements of lists are found, the first that they have.
var keys = []string{"mountPath", "devicePath", "name", "containerPort", "key", "path"}

func contains(has, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := has.(map[string]any)
		if !ok {
			return false // emptyDir: {} is not the same as nothing
		}
		for key, value := range want {
			if inner, ok := value.(map[string]any); ok && len(inner) == 0 && key == "resources" {
				continue // a struct that is encoded even if it is empty
			}
			if !contains(object[key], value) {
				return false
			}
		}
		return true
	case []any:
		list, ok := has.([]any)
		return ok && containsAll(list, want)
	case string:
		text, ok := has.(string)
		return ok && (text == want || sameQuantity(text, want))
	}
	return reflect.DeepEqual(has, want)
}

func containsAll(has, want []any) bool {
	key := keyOf(want)
	if key == "" {
		if len(has) != len(want) {
			return false
		}
		for i := range want {
			if !contains(has[i], want[i]) {
				return false
			}
		}
		return true
	}
	for _, value := range want {
		found := false
		for _, candidate := range has {
			object, ok := candidate.(map[string]any)
			if ok && reflect.DeepEqual(object[key], value.(map[string]any)[key]) {
				found = contains(candidate, value)
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
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
			case string, float64:
				seen[value] = true
			}
		}
		if len(list) > 0 && len(seen) == len(list) {
			return key
		}
	}
	return ""
}

// sameQuantity: the API server writes quantities in another form than people do.
func sameQuantity(a, b string) bool {
	left, errLeft := resource.ParseQuantity(a)
	right, errRight := resource.ParseQuantity(b)
	return errLeft == nil && errRight == nil && left.Cmp(right) == 0
}
