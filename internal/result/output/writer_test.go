package output_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write runs a test with a Writer on a in virtual time, and stops it.
func write(t *testing.T, config output.Config, test func(t *testing.T, w *output.Writer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := output.New(config)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		test(t, w)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestNoChangeWritesNothing(t *testing.T) {
	t.Parallel()
	a := newAPI()
	outputs := []output.Output{
		output.Label{Object: pod, Key: "state"}, output.Annotation{Object: pod, Key: "http_probe"},
		output.Condition{Object: pod, Type: "Idle"}, output.Markers{Object: pod, Policies: policies()},
		output.Field{Object: gameserver, Pointer: "/spec/opsState"},
	}
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		for range 100 {
			entry := idle()
			entry.At = time.Now() // that time goes on is no change
			w.Put("probe", outputs, entry)
			time.Sleep(5 * time.Second)
		}
		if a.sent() != 2 || a.looked() != 2 {
			t.Errorf("%d patches and %d reads of two objects for one state", a.sent(), a.looked())
		}
		time.Sleep(time.Hour)
		if a.sent() != 2 {
			t.Errorf("%d patches after an hour of resyncs", a.sent())
		}
	})
	// Nor does another process, which knows nothing of the first.
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		w.Put("probe", outputs, idle())
		time.Sleep(time.Minute)
		if a.sent() != 2 {
			t.Errorf("%d patches after a restart", a.sent()-2)
		}
	})
}

func TestWhatComesTogetherIsOnePatch(t *testing.T) {
	t.Parallel()
	a := newAPI()
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		w.Put("a", []output.Output{output.Label{Object: pod, Key: "a"}}, idle())
		w.Put("b", []output.Output{output.Annotation{Object: pod, Key: "b"}}, allocated())
		w.Put("c", []output.Output{output.Condition{Object: pod, Type: "C"}}, dead())
		if err := w.Flush(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		if a.sent() != 1 {
			t.Errorf("%d patches", a.sent())
		}
		got := []any{a.at(t, pod, "metadata", "labels", "a"), a.at(t, pod, "metadata", "annotations", "b"), a.condition(t, pod, "C")["status"]}
		if diff := cmp.Diff([]any{"idle", "allocated", "False"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if a.condition(t, pod, "Ready")["status"] != "True" {
			t.Error("the pod has lost kubelet's condition")
		}
	})
}

func TestFlapsAreCoalesced(t *testing.T) {
	t.Parallel()
	a := newAPI()
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		start := time.Now()
		for i := range 1000 {
			entry := idle()
			if i%2 == 0 {
				entry = allocated()
			}
			w.Put("probe", []output.Output{output.Label{Object: pod, Key: "state"}}, entry)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if most := int(time.Since(start)/(500*time.Millisecond)) + 1; a.sent() > most {
			t.Errorf("%d patches in %s, want at most %d", a.sent(), time.Since(start), most)
		}
		if got := a.at(t, pod, "metadata", "labels", "state"); got != "idle" {
			t.Errorf("the last state is %v", got)
		}
	})
}

// An output that removes a condition does not prevent another source from writing it.
func TestConditionIsRemoved(t *testing.T) {
	t.Parallel()
	a := newAPI()
	probed := output.Condition{Object: pod, Type: "C", Reason: "Probed"}
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		w.Put("a", []output.Output{probed}, idle())
		if err := w.Flush(t.Context(), "a"); err != nil || a.condition(t, pod, "C")["reason"] != "Probed" {
			t.Fatalf("%v, condition %v", err, a.condition(t, pod, "C"))
		}
		w.Put("a", []output.Output{output.NoCondition(probed)}, result.Entry{})
		if err := w.Flush(t.Context(), "a"); err != nil || a.condition(t, pod, "C") != nil || a.condition(t, pod, "Ready") == nil {
			t.Errorf("%v, conditions %v", err, a.at(t, pod, "status", "conditions"))
		}
		w.Put("b", []output.Output{output.Condition{Object: pod, Type: "C"}}, idle())
		w.Put("a", []output.Output{output.NoCondition(probed)}, dead())
		if err := w.Flush(t.Context(), "b"); err != nil || a.condition(t, pod, "C")["status"] != "True" {
			t.Errorf("%v, condition of another source %v", err, a.condition(t, pod, "C"))
		}
	})
}

// And the KEP's example: a state's marks go when the state does, others' stay.
func TestMarkersFollowTheState(t *testing.T) {
	t.Parallel()
	a := newAPI()
	outputs := []output.Output{output.Markers{Object: pod, Policies: append(policies(), output.Policy{
		State: "full", Labels: map[string]string{"full": "yes"}, Fields: map[string]any{"/metadata/annotations/n": "1"},
	})}}
	other := result.Entry{State: result.Succeeded, Value: "something else"}
	full := result.Entry{State: result.Succeeded, Value: "full"}
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		steps := []struct {
			entry            result.Entry
			idle, cost, full any
		}{
			{idle(), "true", "-10", nil},
			{allocated(), "false", "10", nil},
			{dead(), "false", "5", nil}, // Takes the policy of unknown
			{full, nil, nil, "yes"},
			{result.Entry{State: result.Unknown}, "false", "5", nil},
			{other, nil, nil, nil},
		}
		for _, step := range steps {
			w.Put("probe", outputs, step.entry)
			if err := w.Flush(t.Context(), "probe"); err != nil {
				t.Fatal(err)
			}
			got := []any{
				a.at(t, pod, "metadata", "labels", "gameserver-idle"),
				a.at(t, pod, "metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"),
				a.at(t, pod, "metadata", "labels", "full"),
			}
			if diff := cmp.Diff([]any{step.idle, step.cost, step.full}, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", step.entry, diff)
			}
		}
		a.put(pod, `{"metadata":{"labels":{"gameserver-idle":"by hand","full":"yes"}}}`)
		time.Sleep(time.Hour) // a resync
		if got := a.at(t, pod, "metadata", "labels", "gameserver-idle"); got != "by hand" {
			t.Errorf("a label that others have set is %v", got)
		}
		if got := a.at(t, pod, "metadata", "labels", "full"); got != nil {
			t.Errorf("a label of a past state is still %v", got)
		}
	})
}

func TestFieldsOfACustomResourceChange(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.objects[gameserver.String()] = `{"metadata":{"name":"gs-0"}}` // Nothing to replace
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		w.Put("plain", []output.Output{
			output.Field{Object: gameserver, Pointer: "/spec/opsState"},
			output.Field{Object: gameserver, Pointer: "/status/players", Subresource: "status", Type: output.NumberField},
			output.Field{Object: gameserver, Pointer: "/spec/ready", Type: output.BoolField},
		}, result.Entry{State: result.Succeeded, Value: "12"})
		if err := w.Flush(t.Context(), "plain"); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"metadata": map[string]any{"name": "gs-0"}, "spec": map[string]any{"opsState": "12"}, "status": map[string]any{"players": 12.0}}
		if diff := cmp.Diff(want, a.at(t, gameserver)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		policy := output.Policy{State: "idle", Fields: map[string]any{"/spec/opsState": "WaitToBeDeleted"}}
		w.Put("marked", []output.Output{output.Markers{Object: gameserver, Policies: []output.Policy{policy}}}, idle())
		if err := w.Flush(t.Context(), "marked"); err != nil {
			t.Fatal(err)
		}
		if got := a.at(t, gameserver, "spec", "opsState"); got != "WaitToBeDeleted" {
			t.Errorf("opsState is %v", got)
		}
	})
}

func TestFailedWritesAreTriedAgain(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.patchErr = errDown
	var attempts []time.Duration
	start := time.Time{}
	config := output.Config{Patcher: a, Pace: result.Pace{Resync: -1}, Observe: func(output.Object, result.Requests, error) {
		if start.IsZero() {
			start = time.Now()
		}
		attempts = append(attempts, time.Since(start))
	}}
	write(t, config, func(t *testing.T, w *output.Writer) {
		w.Put("p", []output.Output{output.Label{Object: pod, Key: "a"}}, idle())
		if err := w.Flush(t.Context(), "p"); !errors.Is(err, errDown) {
			t.Errorf("Flush says %v", err)
		}
		for range 40 { // what is put meanwhile does not shorten the pauses
			w.Put("q", []output.Output{output.Label{Object: pod, Key: "b"}}, allocated())
			w.Put("q", []output.Output{output.Label{Object: pod, Key: "b"}}, idle())
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if len(attempts) < 5 || len(attempts) > 6 {
			t.Errorf("attempts after %v, want one at once and after pauses of 1, 2, 4 ... seconds and up to a quarter", attempts)
		}
		a.fail(nil, nil)
		time.Sleep(time.Minute)
		if got := a.at(t, pod, "metadata", "labels", "a"); got != "idle" {
			t.Errorf("the label is %v in the end", got)
		}
		if err := w.Flush(t.Context(), "p"); err != nil {
			t.Errorf("Flush says %v in the end", err)
		}
	})
}

func TestTheLastResultIsWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	a := newAPI()
	write(t, output.Config{Patcher: a, Pace: result.Pace{Settle: time.Hour}}, func(_ *testing.T, w *output.Writer) {
		w.Put("p", []output.Output{output.Label{Object: pod, Key: "a"}}, idle())
	})
	if got := a.at(t, pod, "metadata", "labels", "a"); got != "idle" {
		t.Errorf("the label is %v", got)
	}
}

func TestFlushHeedsItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := output.New(output.Config{Patcher: newAPI()}) // does not run
		w.Put("p", []output.Output{output.Label{Object: pod, Key: "a"}}, idle())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Flush(ctx, "p"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := w.Flush(t.Context(), "unknown"); err != nil {
			t.Error(err)
		}
	})
}
