package foreign_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// A number that does not fit is refused with the field and the rule, and not in the words of Go's decoder.
func TestNumberThatDoesNotFitIsSaidWithItsField(t *testing.T) {
	t.Parallel()
	err := json.Unmarshal([]byte(`{"spec":{"podName":"web","ttlSecondsAfterFinished":3000000000}}`), &v1beta1.ContainerRecreateRequest{})
	const want = `spec.ttlSecondsAfterFinished: Invalid value: "number 3000000000": must be of type int32`
	if got := foreign.FieldError(fmt.Errorf("decode: %w", err)); got == nil || got.Error() != want {
		t.Errorf("%v, want %s", got, want)
	}
	other := errors.New("other")
	if got := foreign.FieldError(other); !errors.Is(got, other) {
		t.Errorf("%v", got)
	}
}
