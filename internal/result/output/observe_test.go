package output_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
)

// A role that may only patch, as the reference documents it, still works; without reading, the Writer remembers what it has written.
func TestObjectsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.readErr = output.ErrForbidden
	outputs := []output.Output{
		output.Markers{Object: pod, Policies: policies()}, output.Condition{Object: pod, Type: "Idle"},
		output.Field{Object: gameserver, Pointer: "/spec/opsState"},
	}
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		put := func(e result.Entry) {
			t.Helper()
			w.Put("p", outputs, e)
			if err := w.Flush(t.Context(), "p"); err != nil {
				t.Fatal(err)
			}
		}
		put(idle())
		if a.sent() != 2 || a.at(t, gameserver, "spec", "opsState") != "idle" {
			t.Errorf("%d patches: %s", a.sent(), a.at(t, gameserver))
		}
		time.Sleep(time.Hour)
		if a.sent() != 2 {
			t.Errorf("%d patches without a change", a.sent())
		}
		put(result.Entry{State: result.Succeeded, Value: "other"})
		if got := a.at(t, pod, "metadata", "labels", "gameserver-idle"); got != nil {
			t.Errorf("label of a past state: %v", got)
		}
		w.Put("array", []output.Output{output.Field{Object: gameserver, Pointer: "/spec/ports/0/name"}}, idle())
		if err := w.Flush(t.Context(), "array"); err == nil {
			t.Error("an array that cannot be seen was written to")
		}
		settings := output.ConfigMapKey("games", "settings", "0") // no index: data has keys
		a.put(settings.Object, `{"data":{}}`)
		w.Put("key", []output.Output{settings, output.Label{Object: settings.Object, Key: "1"}}, idle())
		if err := w.Flush(t.Context(), "key"); err != nil || a.at(t, settings.Object, "data", "0") != "idle" || a.at(t, settings.Object, "metadata", "labels", "1") != "idle" {
			t.Errorf("%v: %v", err, a.at(t, settings.Object))
		}
	})
}

// What is assumed of an object that may not be read is all that was written, not what was written last.
func TestAllConditionsOfAPodThatMayNotBeReadAreRemembered(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.readErr = output.ErrForbidden
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		for _, kind := range []string{"Idle", "Full"} {
			w.Put(kind, []output.Output{output.Condition{Object: pod, Type: kind}}, idle())
			if err := w.Flush(t.Context(), kind); err != nil {
				t.Fatal(err)
			}
		}
		before := a.sent()
		time.Sleep(time.Hour)
		if a.sent() != before || before != 2 {
			t.Errorf("%d patches, and %d without a change", before, a.sent()-before)
		}
	})
}

// It is the first thing that is wanted of the object.
func TestAnElementOfAnArrayThatCannotBeSeenIsNotWritten(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.readErr = output.ErrForbidden
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		w.Put("array", []output.Output{output.Field{Object: gameserver, Pointer: "/spec/ports/0/name"}}, idle())
		if err := w.Flush(t.Context(), "array"); err == nil || a.sent() > 0 {
			t.Errorf("%v, %d patches", err, a.sent())
		}
	})
}

// What it has is not known: nothing is written over it.
func TestAnObjectThatCannotBeReadIsNotPatched(t *testing.T) {
	t.Parallel()
	a := newAPI()
	a.fail(errDown, nil)
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		w.Put("probe", []output.Output{output.Label{Object: pod, Key: "a"}}, idle())
		if err := w.Flush(t.Context(), "probe"); !errors.Is(err, errDown) || a.sent() > 0 {
			t.Errorf("%v, %d patches", err, a.sent())
		}
		a.fail(nil, nil)
	})
}

func TestASourceThatIsToWriteElsewhereDoes(t *testing.T) {
	t.Parallel()
	a := newAPI()
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		for _, key := range []string{"a", "b"} {
			w.Put("probe", []output.Output{output.Label{Object: pod, Key: key}}, idle())
			if err := w.Flush(t.Context(), "probe"); err != nil {
				t.Fatal(err)
			}
		}
		if got := a.at(t, pod, "metadata", "labels", "b"); got != "idle" {
			t.Errorf("label %v", got)
		}
	})
}

func TestSourcesOfOneMember(t *testing.T) {
	t.Parallel()
	a := newAPI()
	marks := []output.Output{output.Markers{Object: pod, Policies: policies()}}
	write(t, output.Config{Patcher: a}, func(t *testing.T, w *output.Writer) {
		w.Put("first", marks, idle())
		w.Put("second", marks, result.Entry{State: result.Succeeded, Value: "nothing to mark"})
		time.Sleep(time.Second)
		if got := a.at(t, pod, "metadata", "labels", "gameserver-idle"); got != "true" {
			t.Errorf("one source's label is %v after another had none", got)
		}
		w.Drop("first")
		w.Put("third", marks, allocated())
		time.Sleep(time.Second)
		if got := a.at(t, pod, "metadata", "labels", "gameserver-idle"); got != "false" {
			t.Errorf("the latest source's label is %v", got)
		}
	})
}

// journal is a Recorder and a Meter.
type journal struct {
	events []string
	gauges map[string]float64
}

func (j *journal) Event(about output.Object, state result.State, reason, message string) {
	j.events = append(j.events, strings.Join([]string{about.Name, string(state), reason, message}, "|"))
}

func (j *journal) Set(gauge string, value float64) { j.gauges[gauge] = value }

func (j *journal) Clear(gauge string) { delete(j.gauges, gauge) }

func TestGaugesAndEvents(t *testing.T) {
	t.Parallel()
	j := &journal{gauges: map[string]float64{}}
	w := output.New(output.Config{Recorder: j, Meter: j})
	outputs := []output.Output{output.Event{Object: pod, Reason: "Probe"}, output.Gauge{Name: "players"}}
	for _, entry := range []result.Entry{
		{State: result.Succeeded, Value: " 12\n", Message: "12"},
		{State: result.Succeeded, Value: " 12\n", Message: "12"},
	} {
		w.Put("p", outputs, entry)
	}
	if diff := cmp.Diff(map[string]float64{"players": 12}, j.gauges); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Put("p", outputs, dead())
	if len(j.gauges) != 0 {
		t.Errorf("a dead server still has %v", j.gauges)
	}
	want := []string{"gs-0|Succeeded|ProbeSucceeded|12", "gs-0|Failed|ProbeFailed|connection refused"}
	if diff := cmp.Diff(want, j.events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Put("p", outputs, result.Entry{State: result.Unknown, Message: strings.Repeat("m", 2*result.MaxMessage)})
	if last := j.events[len(j.events)-1]; last != "gs-0|Unknown|ProbeUnknown|"+strings.Repeat("m", result.MaxMessage) {
		t.Errorf("event of %d bytes: %.60s", len(last), last)
	}
	without := output.New(output.Config{})
	without.Put("p", outputs, idle()) // nobody listens: nothing happens, and nothing panics
}
