package missed_test

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// A manager that starts in the middle of a repair must not take a replacement without sidecars for a pod from before it.
func TestAdoptedRepairPausesWhenTheReplacementHasMissedItsInjection(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	evicted := c.now.Add(-10 * time.Second)
	delete(c.pods, key("a", 0))
	c.pods[key("a", 9)] = missed.Pod{Reason: missed.NotReached, Workload: "a", Created: metav1.NewTime(evicted.Add(time.Second)), Ready: true}
	leaving := &rollout.Leaving{UID: "a-0", Workload: "a", At: evicted, Gone: evicted.Add(30 * time.Second)}
	if !c.repair.Adopt(key("a", 0), leaving, maps.All(c.pods), 0) {
		t.Fatal("not adopted")
	}
	if c.repair.Adopt(key("a", 0), leaving, maps.All(c.pods), 0) {
		t.Error("adopted twice")
	}
	_, found, again := c.repair.Next(maps.All(c.pods), c.workload, c.now)
	if found || !again.Equal(c.now.Add(time.Minute)) {
		t.Errorf("found %t, again in %s: want a pause of a minute", found, again.Sub(c.now))
	}
}

// Without a replacement that has missed its injection an adopted repair goes on when its workload is complete.
func TestAdoptedRepairGoesOnWhenTheReplacementIsReady(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	delete(c.pods, key("a", 0))
	c.repair.Adopt(key("a", 0), &rollout.Leaving{UID: "a-0", Workload: "a", At: c.now, Gone: c.now.Add(30 * time.Second)}, maps.All(c.pods), 0)
	if c.next() {
		t.Fatalf("%v is evicted before there is a replacement", c.evicted)
	}
	c.replaced("a", 1, 1)
	if !c.next() {
		t.Error("nothing is evicted although the replacement is ready")
	}
}

// The pauses grow with failures in a row only: after a success the next failure is no reason to wait for an hour.
func TestPausesBeginAnewAfterASuccess(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	fail := func(n int) time.Duration {
		t.Helper()
		if !c.next() {
			t.Fatalf("nothing is evicted after %v", c.evicted)
		}
		workload := c.evicted[len(c.evicted)-1][:1]
		c.pods[key(workload, 10+n)] = missed.Pod{Reason: missed.NotReached, Workload: workload, Created: metav1.NewTime(c.now), Ready: true}
		_, _, again := c.repair.Next(maps.All(c.pods), c.workload, c.now)
		pause := again.Sub(c.now)
		c.now = again.Time
		return pause
	}
	if first, second := fail(0), fail(1); first != time.Minute || second != 2*time.Minute {
		t.Errorf("pauses of %s and %s", first, second)
	}
	if !c.next() {
		t.Fatalf("nothing is evicted after %v", c.evicted)
	}
	c.replaced(c.evicted[2][:1], 1, 1)
	if pause := fail(2); pause != time.Minute {
		t.Errorf("a pause of %s after a success", pause)
	}
}

// For example of a StatefulSet, whose new pod has the name of the previous one.
func TestAReplacementOfTheSameNameThatMissesItsInjectionPausesTheRepair(t *testing.T) {
	t.Parallel()
	for reason, paused := range map[missed.Reason]bool{missed.NotReached: true, missed.Skipped: false} {
		c := newCluster(t)
		if !c.next() {
			t.Fatal("nothing is evicted")
		}
		c.pods[key(c.evicted[0][:1], 0)] = missed.Pod{Reason: reason, Workload: c.evicted[0][:1], Created: metav1.NewTime(c.now), Ready: true}
		if c.evicted[0] != "a-0" || c.next() == paused {
			t.Errorf("%s: evicted %v, want a pause: %t", reason, c.evicted, paused)
		}
	}
}
