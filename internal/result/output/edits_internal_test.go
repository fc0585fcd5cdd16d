package output

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/result"
)

// The value of a result is compared first, then its state in any case of letters; a failure without a policy of its own takes
// the policy for unknown.
func TestWhichPolicyApplies(t *testing.T) {
	t.Parallel()
	markers := func(states ...string) Markers {
		m := Markers{}
		for _, state := range states {
			m.Policies = append(m.Policies, Policy{State: state})
		}
		return m
	}
	for name, test := range map[string]struct {
		markers Markers
		entry   result.Entry
		want    string
	}{
		"the value":                        {markers("idle", "busy"), result.Entry{State: result.Succeeded, Value: "busy"}, "busy"},
		"the value, not in another case":   {markers("Idle"), result.Entry{State: result.Succeeded, Value: "idle"}, ""},
		"the value before the state":       {markers("Succeeded", "idle"), result.Entry{State: result.Succeeded, Value: "idle"}, "idle"},
		"the state":                        {markers("idle", "succeeded"), result.Entry{State: result.Succeeded, Value: "other"}, "succeeded"},
		"a failure":                        {markers("unknown", "FAILED"), result.Entry{State: result.Failed, Value: "x"}, "FAILED"},
		"a failure without its own":        {markers("idle", "unknown"), result.Entry{State: result.Failed, Value: "x"}, "unknown"},
		"unknown is no failure":            {markers("failed"), result.Entry{State: result.Unknown}, ""},
		"unknown":                          {markers("Unknown"), result.Entry{State: result.Unknown}, "Unknown"},
		"a value that is called unknown":   {markers("unknown"), result.Entry{State: result.Succeeded, Value: "unknown"}, "unknown"},
		"succeeded is not taken as failed": {markers("failed", "unknown"), result.Entry{State: result.Succeeded, Value: "x"}, ""},
	} {
		if got, ok := test.markers.match(test.entry); got.State != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, want %q", name, got.State, test.want)
		}
	}
}

// A value that does not have the type of the field is not written: a number of a custom resource may not become text.
func TestFieldIsWrittenInItsType(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", result.MaxValue)
	for name, test := range map[string]struct {
		of    FieldType
		value string
		want  any // nil: nothing is written
	}{
		"text":                  {"", " a ", " a "},
		"text that is a number": {StringField, "3", "3"},
		"long text":             {StringField, long, foreign.Cut(long, result.MaxValue)},
		"number":                {NumberField, " 3.5\n", 3.5},
		"no number":             {NumberField, "many", nil},
		"empty number":          {NumberField, "", nil},
		"true":                  {BoolField, "true", true},
		"false":                 {BoolField, " False ", false},
		"no boolean":            {BoolField, "yes", nil},
	} {
		edits := Field{Pointer: "/spec/n", Type: test.of}.edits(result.Entry{State: result.Succeeded, Value: test.value})
		var got any
		if len(edits) > 0 {
			got = edits[0].Want
		}
		if (len(edits) > 0) != (test.want != nil) { // an edit without a value would take the member away
			t.Errorf("%s: %+v", name, edits)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Any text may be a result, and the API refuses labels that are none and objects that are too large.
func TestTextOfAResultIsMadeToFit(t *testing.T) {
	t.Parallel()
	entry := result.Entry{State: result.Succeeded, Value: "two words " + strings.Repeat("é", result.MaxValue)}
	for name, test := range map[string]struct {
		of   Output
		want string
	}{
		"label":      {Label{Key: "a"}, result.LabelValue(entry.Value)},
		"annotation": {Annotation{Key: "a"}, foreign.Cut(entry.Value, result.MaxValue)},
	} {
		if edits := test.of.edits(entry); len(edits) != 1 || edits[0].Want != test.want || len(test.want) > result.MaxValue {
			t.Errorf("%s: %+v", name, edits)
		}
	}
}

func TestConditionFollowsTheState(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	long := strings.Repeat("m", 2*result.MaxMessage)
	for state, want := range map[result.State]string{result.Succeeded: "True", result.Failed: "False", result.Unknown: "Unknown", "": "Unknown"} {
		edits := Condition{Object: Pod(identity.Pod{Name: "web"}), Type: "example.com/idle"}.edits(result.Entry{State: state, Message: long, At: at})
		got := *edits[0].Condition
		if got.Status != want || got.Type != "example.com/idle" || !got.At.Equal(at) || len(got.Message) > result.MaxMessage {
			t.Errorf("state %q: %s %s, message of %d bytes; want %s", state, got.Type, got.Status, len(got.Message), want)
		}
	}
}

// When the state changes, values of the policies of other states are removed, and values of other clients are not.
func TestMarkersRemoveWhatOtherPoliciesWrote(t *testing.T) {
	t.Parallel()
	m := Markers{Policies: []Policy{
		{State: "idle", Labels: map[string]string{"state": "idle"}, Annotations: map[string]string{"cost": "-10"}, Fields: map[string]any{"/spec/opsState": "Kill"}},
		{State: "busy", Labels: map[string]string{"state": "busy"}},
	}}
	for name, test := range map[string]struct {
		value string
		want  []string
	}{
		"idle":    {"idle", []string{"/metadata/labels/state = idle", "/metadata/annotations/cost = -10", "/spec/opsState = Kill"}},
		"busy":    {"busy", []string{"/metadata/labels/state = busy", "/metadata/annotations/cost without [-10]"}},
		"neither": {"other", []string{"/metadata/labels/state without [idle busy]", "/metadata/annotations/cost without [-10]"}},
	} {
		var got []string
		for _, edit := range m.edits(result.Entry{State: result.Succeeded, Value: test.value}) {
			if text, ok := edit.Want.(string); ok {
				got = append(got, FormatPointer(edit.Path)+" = "+text)
			} else {
				got = append(got, FormatPointer(edit.Path)+" without "+fmt.Sprint(edit.Ours))
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
