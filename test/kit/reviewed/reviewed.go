// Package reviewed applies the answers of mutating webhooks, as the API server does. It is for tests only.
package reviewed

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Decode returns what the API server would store of an object that was sent and that a webhook has answered, and reads it into object. The
// test fails if the webhook has refused it.
func Decode(t *testing.T, sent []byte, response admission.Response, object any) (stored []byte) {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("refused: %+v", response.Result)
	}
	stored = sent
	if len(response.Patches) > 0 {
		operations, err := json.Marshal(response.Patches)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		if stored, err = patch.Apply(sent); err != nil {
			t.Fatalf("apply %s: %v", operations, err)
		}
	}
	if err := json.Unmarshal(stored, object); err != nil {
		t.Fatal(err)
	}
	return stored
}
