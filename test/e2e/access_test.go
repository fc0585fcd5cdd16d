package e2e_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// access is a call to the API server, and what its refusal has to contain; without words the call has to succeed.
type access struct {
	do    func(context.Context) error
	words []string
}

func checkAccess(t *testing.T, calls map[string]access) {
	t.Helper()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := call.do(t.Context())
			if len(call.words) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !containsAll(err.Error(), call.words) {
				t.Errorf("%v, want a refusal with %q", err, call.words)
			}
		})
	}
}
