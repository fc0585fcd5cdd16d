package console_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/console"
)

func TestMissingStatusIsSaidOnceAfterSomeSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		silent := console.Silent{Output: console.NewOutput(&out, false), Kind: "RestartRollouts", Feature: "restartRollouts"}
		for second := range 30 {
			silent.See(second == 3) // a status, and then a change of the object
			if said := strings.Count(out.String(), "manager.features.restartRollouts"); said != min(1, second/9) && second < 18 || said > 1 {
				t.Errorf("after %d s:\n%s", second, out.String())
			}
			time.Sleep(time.Second)
		}
		if !strings.Contains(out.String(), "does not process RestartRollouts") {
			t.Error(out.String())
		}
	})
}

// Whether refit-manager is silent is not known then.
func TestAPIServerThatIsAwayIsSaidOnceEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		silent := console.Silent{Output: console.NewOutput(&out, false), Kind: "RestartRollouts", Feature: "restartRollouts"}
		for second := range 30 {
			var err error
			if second%15 > 3 {
				err = errors.New("connection refused")
			}
			silent.Tick(false, err)
			time.Sleep(time.Second)
		}
		if said := strings.Count(out.String(), "trying again until the API server can be reached: connection refused"); said != 2 || strings.Contains(out.String(), "manager.features") {
			t.Errorf("%d times:\n%s", said, out.String())
		}
	})
}
