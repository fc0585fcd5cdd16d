package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// FieldError returns an error of decoding that names the field of a value with a wrong type, as the API server does. A mutating webhook
// decodes an object before the API server compares it with the schema. Other errors are returned as they are.
func FieldError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	field := strings.ReplaceAll(wrong.Field, ".Container.", ".") // an embedded struct is no field of its own
	return fmt.Errorf("%s: Invalid value: %q: must be of type %s", field, wrong.Value, wrong.Type)
}
