package disruptions_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/disruptions"
)

// A RestartRollout and a SidecarSet that decided within 0.4 s took out a pod each.
func TestTwoControllersDoNotTakeOutAPodEachAtTheSameMoment(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	ledger := disruptions.NewLedger(func() time.Time { return now })
	take := func(by string, uids ...types.UID) (seen map[types.UID]bool) {
		seen = map[types.UID]bool{}
		ledger.Decide(by, func(others func(types.UID) bool) []types.UID {
			for _, uid := range []types.UID{"a", "b"} {
				seen[uid] = others(uid)
			}
			return uids
		})
		return seen
	}
	take("RestartRollout shop/web", "a")
	if seen := take("SidecarSet log", "b"); !seen["a"] || seen["b"] {
		t.Errorf("the SidecarSet sees %v", seen)
	}
	if seen := take("RestartRollout shop/web"); seen["a"] || !seen["b"] {
		t.Errorf("the RestartRollout sees %v", seen)
	}
	now = now.Add(10 * time.Second) // its cache shows it
	if seen := take("SidecarSet log"); seen["a"] {
		t.Errorf("still kept: %v", seen)
	}
}

func TestAControllerThatWaitsKnowsUntilWhen(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	ledger := disruptions.NewLedger(func() time.Time { return now })
	begin := func(map[types.UID]time.Time) []types.UID { return []types.UID{"a"} }
	ledger.DecideBeside("RestartRollout shop/web", begin)
	now = now.Add(4 * time.Second)
	ledger.DecideBeside("SidecarSet log", func(others map[types.UID]time.Time) []types.UID {
		if len(others) != 1 || !others["a"].Equal(now.Add(6*time.Second)) {
			t.Errorf("%v", others)
		}
		return nil
	})
}
