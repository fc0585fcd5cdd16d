package upgrade_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// unready has been so since a time; crashing says that its application is in CrashLoopBackOff.
func (w *world) unready(since time.Time, crashing bool) {
	w.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
	status := &w.pod.Status.ContainerStatuses[0]
	status.Ready, status.State = false, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if crashing {
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
}

// broken judges, and looks again at the time that the verdict names.
func (w *world) broken(want bool, again time.Time) {
	w.t.Helper()
	if v := w.judge(); v.BrokenBefore != want || !v.Again.Equal(again) {
		w.t.Errorf("broken before %v, again %s; want %v, %s", v.BrokenBefore, v.Again, want, again)
	}
}

func TestAPodThatCouldNotBecomeReadyBeforeItsUpdateIsBrokenBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	since := w.now.Add(-time.Minute)
	w.unready(since, true)
	w.broken(false, time.Time{}) // nothing has been begun
	w.image("log:2")
	w.update()
	if state := w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState]; !strings.Contains(state, `"unready":{"since":"2026-11-22T09:59:00Z","stuck":true}`) {
		t.Error(state)
	}
	w.unready(since, false) // between two crashes
	w.broken(true, time.Time{})
	w.image("log:3")
	w.update() // by then it does not crash
	w.unready(since, false)
	w.broken(true, time.Time{})
	w.unready(w.now, false) // it was ready in between
	w.broken(false, time.Time{})
}

func TestAPodThatIsNotReadyForAMomentIsNoneThatIsBrokenBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	since := w.now.Add(-time.Minute)
	w.unready(since, false)
	w.image("log:2")
	w.faulty["log:2"] = true
	w.update()
	w.unready(since, false)
	w.broken(false, since.Add(10*time.Minute))
	w.now = since.Add(10 * time.Minute)
	w.broken(true, time.Time{})
}

func TestAPodThatAnUpdateHasTakenOutIsNotBrokenBeforeTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:2")
	w.update()
	since := w.now.Add(5 * time.Minute)
	w.now = w.now.Add(time.Hour)
	w.unready(since, true)
	w.image("log:3")
	w.update()
	w.unready(since, true)
	w.broken(false, time.Time{})
	since = w.now.Add(15 * time.Minute) // so long after an update something else is the reason
	w.now = since.Add(time.Minute)
	w.unready(since, true)
	w.image("log:4")
	w.update()
	w.unready(since, true)
	w.broken(true, time.Time{})
}

// The time of the condition is from the node's clock, the time of the record from refit-manager's.
func TestAPodThatAnUpdateHasTakenOutIsNotBrokenBeforeTheNextAlsoIfTheClockOfItsNodeIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:2")
	begun := w.now
	w.update()
	since := begun.Add(-59 * time.Second)
	w.now = w.now.Add(time.Minute)
	w.unready(since, true)
	w.image("log:3")
	w.update()
	w.unready(since, true)
	w.broken(false, time.Time{})
}

// For example if a spec whose image cannot be pulled is corrected, and corrected again a minute later.
func TestAPodThatAnUpdateHasTakenOutIsNotBrokenBeforeThoseThatSupersedeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:2")
	w.faulty["log:2"] = true
	w.update()
	since := w.now.Add(time.Second)
	for _, image := range []string{"log:3", "log:4", "log:5"} {
		w.now = w.now.Add(2 * time.Minute)
		w.unready(since, true)
		w.image(image)
		w.faulty[image] = true
		w.update()
		w.unready(since, true)
		w.broken(false, time.Time{})
	}
}

// OpenKruise may also have overwritten Refit's annotation.
func TestAPodThatWasBrokenLongBeforeARecordOfOpenKruiseIsBrokenBeforeTheNextUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	since := w.now.Add(-2*time.Minute - time.Second) // more than clocks are apart before the record
	w.unready(since, true)
	w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = `{"logs":{"revision":"r","updateTimestamp":"` + w.now.Add(-time.Minute).Format(time.RFC3339) +
		`","lastContainerStatuses":{"log":{"imageID":"sha256:log:0"}}}}`
	w.broken(false, time.Time{})
	w.image("log:2")
	w.update()
	w.unready(since, true)
	w.broken(true, time.Time{})
}
