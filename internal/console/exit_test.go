package console_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/internal/console"
)

// A script must be able to rely on it that nothing has been changed when the exit code is 2.
func TestMissingRightIsRefusedUnlessSomethingHasBeenChanged(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no"))
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"before":                 {fmt.Errorf("list pods: %w", forbidden), console.ExitRefused},
		"among others":           {errors.Join(errors.New("a"), forbidden), console.ExitRefused},
		"after a change":         {fmt.Errorf("%w, go on", console.Begun(forbidden)), console.ExitFailed},
		"refused after a change": {console.Begun(console.Refused(forbidden)), console.ExitFailed},
		"not in time":            {console.Begun(console.ErrTimeout), console.ExitTimeout},
		"nothing":                {console.Begun(nil), console.ExitDone},
	} {
		if got := console.ExitCode(tt.err); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tt.want)
		}
	}
	if err := console.Begun(forbidden); err.Error() != forbidden.Error() || !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
}
