package must_test

import (
	"testing"

	"github.com/refit-project/refit/internal/must"
)

func TestValuesAreEncoded(t *testing.T) {
	t.Parallel()
	if got := string(must.JSON(map[string]bool{"b": true, "a": false})); got != `{"a":false,"b":true}` {
		t.Error(got)
	}
}

func TestATypeThatCannotBeEncodedIsAFaultOfTheCaller(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	must.JSON(func() {})
}
