// Package must encodes values that can always be encoded, because their types are known and made by Refit or by
// Kubernetes. Text of others must stay out: it is read by package foreign.
package must

import "encoding/json"

// JSON returns the value as JSON. It panics if the value's type cannot be encoded.
func JSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // a fault of the caller
	}
	return text
}
