package output_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
)

// put has the source want the entry there, and waits for the write.
func put(t *testing.T, w *output.Writer, source string, entry result.Entry, outputs ...output.Output) {
	t.Helper()
	w.Put(source, outputs, entry)
	if err := w.Flush(t.Context(), source); err != nil {
		t.Fatal(err)
	}
}

func TestTheLatestSourceOfAMemberCounts(t *testing.T) {
	t.Parallel()
	a := newAPI()
	state := output.Label{Object: pod, Key: "state"}
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		for _, step := range []struct {
			source string
			entry  result.Entry
			want   string
		}{{"a", idle(), "idle"}, {"b", allocated(), "allocated"}, {"a", dead(), "Failed"}, {"b", idle(), "idle"}, {"a", allocated(), "allocated"}} {
			put(t, w, step.source, step.entry, state)
			if got := a.at(t, pod, "metadata", "labels", "state"); got != step.want {
				t.Errorf("after %s of %s the label is %v", step.want, step.source, got)
			}
		}
	})
}

// What a source has written stays when it is dropped, and belongs to others from then on.
func TestADroppedSourceWantsNothing(t *testing.T) {
	t.Parallel()
	a := newAPI()
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		put(t, w, "a", idle(), output.Label{Object: pod, Key: "state"})
		w.Drop("a")
		if got := a.at(t, pod, "metadata", "labels", "state"); got != "idle" {
			t.Errorf("the label is %v after the drop", got)
		}
		a.put(pod, `{"metadata":{"labels":{"state":"by hand"}}}`)
		put(t, w, "b", idle(), output.Label{Object: pod, Key: "other"})
		time.Sleep(time.Hour) // resyncs
		if got := a.at(t, pod, "metadata", "labels", "state"); got != "by hand" {
			t.Errorf("the label of a dropped source is %v", got)
		}
	})
}

// Two sources whose states have no such label: what either may have written is removed.
func TestMarksOfEitherSourceAreRemoved(t *testing.T) {
	t.Parallel()
	a := newAPI()
	marks := func(value string) output.Output {
		return output.Markers{Object: pod, Policies: []output.Policy{{State: "idle", Labels: map[string]string{"state": value}}}}
	}
	none := result.Entry{State: result.Succeeded, Value: "nothing to mark"}
	for _, left := range []string{"one", "two"} {
		a.put(pod, `{"metadata":{"labels":{"state":"`+left+`"}}}`)
		write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
			w.Put("a", []output.Output{marks("one")}, none)
			put(t, w, "b", none, marks("two"))
			if got := a.at(t, pod, "metadata", "labels", "state"); got != nil {
				t.Errorf("label %v is left", got)
			}
		})
	}
}

// Without reading, a change back is a change.
func TestAChangeBackIsWrittenWithoutReading(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.readErr = output.ErrForbidden
	outputs := []output.Output{output.Condition{Object: pod, Type: "Idle"}, output.Markers{Object: pod, Policies: policies()}}
	other := result.Entry{State: result.Succeeded, Value: "nothing to mark"}
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		for _, step := range []struct {
			entry  result.Entry
			status string
			label  any
		}{{idle(), "True", "true"}, {dead(), "False", "false"}, {idle(), "True", "true"}, {other, "True", nil}, {idle(), "True", "true"}} {
			put(t, w, "p", step.entry, outputs...)
			got := []any{a.condition(t, pod, "Idle")["status"], a.at(t, pod, "metadata", "labels", "gameserver-idle")}
			if diff := cmp.Diff([]any{step.status, step.label}, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", step.entry, diff)
			}
		}
		put(t, w, "p", result.Entry{}, output.NoCondition(output.Condition{Object: pod, Type: "Idle"}))
		put(t, w, "p", idle(), outputs...)
		if got := a.condition(t, pod, "Idle")["status"]; got != "True" {
			t.Errorf("a condition that was removed and is wanted again: %v", got)
		}
		put(t, w, "p", other, outputs...)
		sent := a.sent()
		time.Sleep(time.Hour) // resyncs
		if a.sent() != sent {
			t.Errorf("%d patches without a change", a.sent()-sent)
		}
	})
}

func TestAGaugeIsANumberOfASuccess(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]result.Entry{
		"failed, with a number": {State: result.Failed, Value: "12"},
		"no number":             {State: result.Succeeded, Value: "idle"},
	} {
		j := &journal{gauges: map[string]float64{"players": 1}}
		w := output.New(output.Config{Meter: j})
		w.Put("p", []output.Output{output.Gauge{Name: "players"}}, entry)
		if len(j.gauges) != 0 {
			t.Errorf("%s: gauge %v", name, j.gauges)
		}
	}
}

func TestObjectsAreNamedAsByKubectl(t *testing.T) {
	t.Parallel()
	node := output.Object{Version: "v1", Resource: "nodes", Name: "node-1"}
	got := []string{pod.String(), gameserver.String(), node.String()}
	if diff := cmp.Diff([]string{"pods games/gs-0", "gameservers.game.kruise.io games/gs-0", "nodes node-1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
