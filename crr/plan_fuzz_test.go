package crr_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/identity"
)

// world runs a request against a simulated kubelet. Each byte of the script is one thing that happens.
type world struct {
	*fixture
	t       *testing.T
	stopped map[identity.ContainerID]bool
	// recorded is what may be stopped: the instance at admission or, forced, the one first stopped.
	recorded identity.ContainerID
	restarts int32
	prunes   bool // the CRD is OpenKruise's
}

// play applies the event and then runs a round of the daemon, unless the event is that the daemon does not run.
func (w *world) play(event byte) {
	newest := w.observed.Instances["app"]
	down := len(newest) == 0 || newest[0].State == identity.StateExited
	switch event % 10 {
	case 0: // it crashes
		w.end(int32(event/10) % 2)
	case 1, 2: // kubelet starts the next
		if down {
			w.restarts++
			w.restarted("app", w.restarts)
		}
	case 3: // kubelet reports
		if !down {
			w.ready("app", w.restarts)
		}
	case 4: // an image update, or another request, restarts it behind our back
		w.end(0)
		w.restarts++
		w.restarted("app", w.restarts)
	case 5: // dead instances are collected
		if down {
			w.missing("app")
		}
	case 6: // the daemon dies and forgets
		w.observed.Actions = map[string]crr.ActionState{}
		return
	case 7:
		w.crashLoop("app", w.restarts)
	case 8:
		w.now = w.now.Add(time.Duration(event) * time.Second)
	case 9: // the runtime does not answer for this round
		w.observed.Unseen = "down"
		defer func() { w.observed.Unseen = "" }()
	}
	w.round(event)
}

func (w *world) store(status crr.Status) {
	if w.prunes {
		w.request = store(w.request, status)
	} else {
		w.request.Status = status
	}
}

func (w *world) end(code int32) {
	if instances := w.observed.Instances["app"]; len(instances) > 0 && instances[0].State == identity.StateRunning {
		instances[0].State, instances[0].ExitCode, instances[0].FinishedAt = identity.StateExited, code, w.now
	}
}

// round is one round of the daemon. It may die between the write and the action.
func (w *world) round(event byte) {
	before := w.request.Status
	decision := w.plan()
	if crr.Completed(w.request) {
		if !equality.Semantic.DeepEqual(before, decision.Status) || decision.Stop != nil || decision.Start != nil {
			w.t.Fatalf("an ended request was touched: %+v", decision)
		}
		return
	}
	if w.prunes && event%5 == 0 { // it dies between the status and the record
		stored := w.request.DeepCopy()
		stored.Status = prune(decision.Status)
		w.request = record.Apply(stored)
		return
	}
	w.store(decision.Status)
	if again := w.plan(); !equality.Semantic.DeepEqual(again.Status, decision.Status) {
		w.t.Fatalf("one observation, two statuses:\n%+v\n%+v", decision.Status, again.Status)
	}
	w.judge(decision)
	if event%3 == 0 {
		return
	}
	action := w.observed.Actions["app"]
	if decision.Stop != nil {
		w.end(143)
		w.stopped[decision.Stop.ID] = true
		action.Done = w.now
		if len(decision.Stop.Remove) > 0 {
			w.missing("app")
		}
	}
	if decision.Start != nil {
		w.missing("app")
		action.Done = w.now
		if decision.Start.Touch {
			action.Touches++
		}
	}
	w.observed.Actions["app"] = action
}

func (w *world) judge(decision crr.Decision) {
	w.t.Helper()
	if decision.Stop != nil && decision.Start != nil {
		w.t.Fatal("two acts at once")
	}
	if stop := decision.Stop; stop != nil {
		if w.recorded.IsZero() {
			w.recorded = stop.ID
		}
		if stop.ID != w.recorded {
			w.t.Fatalf("stops %v, recorded is %v", stop.ID, w.recorded)
		}
		if got := decision.Status.ContainerRecreateStates[0].ContainerID; got != stop.ID.String() {
			w.t.Fatalf("stops %v but records %s", stop.ID, got)
		}
	}
	if start := decision.Start; start != nil {
		if newest := w.observed.Instances["app"]; len(newest) > 0 && newest[0].State == identity.StateRunning {
			w.t.Fatal("starts what runs")
		}
		for _, id := range start.Remove {
			for _, instance := range w.observed.Instances["app"] {
				if instance.ID == id && instance.State != identity.StateExited {
					w.t.Fatalf("removes %v, which is %v", id, instance.State)
				}
			}
		}
	}
	if result, _ := crr.Result(decision.Status); decision.Status.CompletionTime != nil && result == "succeeded" {
		newest := w.observed.Instances["app"][0]
		if newest.State != identity.StateRunning || newest.ID == w.recorded || newest.ID == w.old() || !w.reportedReady(newest.ID) {
			w.t.Fatalf("success with %+v", newest)
		}
	} else if decision.Status.CompletionTime != nil && decision.Status.Message == "" {
		w.t.Fatal("failed without a message")
	}
}

func (w *world) old() identity.ContainerID {
	id, err := identity.ParseContainerID(w.request.Status.ContainerRecreateStates[0].ContainerID)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) reportedReady(id identity.ContainerID) bool {
	for _, status := range w.observed.Pod.Status.ContainerStatuses {
		if status.ContainerID == id.String() {
			return status.Ready
		}
	}
	return false
}

// Whatever happens in whatever order, a request never stops an instance that it did not record, never acts on a running
// new instance, never reports a false success, and never changes its result.
func FuzzPlan(f *testing.F) {
	f.Add(false, byte(0), []byte{8, 1, 3, 3})
	f.Add(true, byte(0), []byte{4, 4, 8, 6, 1, 3})
	f.Add(false, byte(1), []byte{0, 7, 7, 8, 1, 3, 0})
	f.Add(false, byte(2), []byte{0, 10, 8, 1, 3, 0})
	f.Add(true, byte(130), []byte{8, 11, 4, 4, 6, 13, 7, 0, 21, 23})
	f.Add(false, byte(129), []byte{8, 7, 0, 11, 20, 7, 13, 23})
	f.Fuzz(func(t *testing.T, force bool, policy byte, script []byte) {
		w := &world{fixture: newFixture(), t: t, stopped: map[identity.ContainerID]bool{}, prunes: policy >= 128}
		policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
		w.observed.Pod.Spec.RestartPolicy = policies[int(policy)%len(policies)]
		if force {
			forced(w.fixture)
		} else {
			w.recorded = id("app", 0)
		}
		for _, event := range script[:min(len(script), 200)] {
			w.play(event)
		}
		if len(w.stopped) > 1 {
			t.Fatalf("stopped %d instances", len(w.stopped))
		}
	})
}
