package result_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/result"
)

func TestCut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in    string
		limit int
		want  string
	}{
		"fits":                {"abc", 3, "abc"},
		"cut":                 {"abcd", 3, "abc"},
		"between runes":       {"aéé", 4, "aé"},
		"no rune fits":        {"日", 2, ""},
		"bytes that are none": {"a\xffb", 10, "a\uFFFDb"},
		"half a rune at end":  {"ab\xe6\x97", 3, "ab"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := result.Cut(tt.in, tt.limit); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLabelValueIsAlwaysValid(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"idle":                          "idle",
		"idle\n":                        "idle",
		"v1: Update success":            "v1--Update-success",
		"":                              "",
		"日本":                            "",
		"-x-":                           "x",
		strings.Repeat("a", 100):        strings.Repeat("a", 63),
		strings.Repeat("a", 62) + "-bc": strings.Repeat("a", 62),
		`{"players": 3}`:                "players---3",
	}
	for in, want := range tests {
		if got := result.LabelValue(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzLabelValue(f *testing.F) {
	f.Add("v1: Update success")
	f.Add("\xff日.-_")
	f.Fuzz(func(t *testing.T, s string) {
		v := result.LabelValue(s)
		if faults := validation.IsValidLabelValue(v); len(faults) > 0 {
			t.Errorf("%q of %q: %v", v, s, faults)
		}
		if result.LabelValue(v) != v {
			t.Errorf("%q is changed when made again", v)
		}
		if c := result.Cut(s, 7); len(c) > 7 || !utf8.ValidString(c) {
			t.Errorf("cut %q to %q", s, c)
		}
	})
}

func TestPointer(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/spec/opsState", "/spec/a~1b/~01", "/metadata/labels/a~1b", "/status/0/x", "/data/k"} {
		tokens, err := result.ParsePointer(good)
		if err != nil {
			t.Errorf("%s: %v", good, err)
		}
		if back := result.FormatPointer(tokens); back != good {
			t.Errorf("%s came back as %s", good, back)
		}
	}
	for _, bad := range []string{"", "/", "spec/x", "/spec//x", "/spec/-", "/spec/a~2", "/kind", "/apiVersion", "/metadata",
		"/metadata/name", "/metadata/labels", "/metadata/uid/x", "$.spec"} {
		if _, err := result.ParsePointer(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add("/spec/a~1b/~01")
	f.Fuzz(func(t *testing.T, pointer string) {
		if tokens, err := result.ParsePointer(pointer); err == nil && result.FormatPointer(tokens) != pointer {
			t.Errorf("%q came back as %q", pointer, result.FormatPointer(tokens))
		}
	})
}

func TestTargetsAreValidated(t *testing.T) {
	t.Parallel()
	bad := map[string]result.Target{
		"label key":            result.Label{Object: pod, Key: "a b"},
		"annotation key":       result.Annotation{Object: pod, Key: ""},
		"kubelet's condition":  result.Condition{Object: pod, Type: "Ready"},
		"condition of another": result.Condition{Object: gameserver, Type: "Idle"},
		"object without name":  result.Field{Object: result.Object{Version: "v1", Resource: "pods"}, Pointer: "/spec/x"},
		"pointer":              result.Field{Object: gameserver, Pointer: "spec.x"},
		"subresource":          result.Field{Object: gameserver, Pointer: "/spec/x", Subresource: "scale"},
		"field type":           result.Field{Object: gameserver, Pointer: "/spec/x", Type: "int"},
		"state twice":          result.Markers{Object: pod, Policies: []result.Policy{{State: "a"}, {State: "a"}}},
		"label value":          result.Markers{Object: pod, Policies: []result.Policy{{State: "a", Labels: map[string]string{"k": "a b"}}}},
		"marker annotation":    result.Markers{Object: pod, Policies: []result.Policy{{State: "a", Annotations: map[string]string{"/": ""}}}},
		"marker pointer":       result.Markers{Object: pod, Policies: []result.Policy{{State: "a", Fields: map[string]any{"x": 1}}}},
		"event":                result.Event{Object: pod},
		"gauge":                result.Gauge{Name: "1x"},
		"empty gauge":          result.Gauge{},
	}
	for name, target := range bad {
		if target.Validate() == nil {
			t.Errorf("%s: no error for %+v", name, target)
		}
	}
	good := []result.Target{
		result.Label{Object: pod, Key: "a/b"}, result.Annotation{Object: gameserver, Key: "k"}, result.Condition{Object: pod, Type: "game.kruise.io/idle"},
		result.Field{Object: gameserver, Pointer: "/spec/opsState", Subresource: "status", Type: result.NumberField},
		result.ConfigMapKey("ns", "n", "k"), result.Markers{Object: pod, Policies: policies()},
		result.Event{Object: pod, Reason: "Probe"}, result.Gauge{Name: "players_total"},
	}
	for _, target := range good {
		if err := target.Validate(); err != nil {
			t.Errorf("%+v: %v", target, err)
		}
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	got := result.Objects([]result.Target{
		result.Label{Object: pod, Key: "a"}, result.Annotation{Object: pod, Key: "b"}, result.Gauge{Name: "g"},
		result.Field{Object: gameserver, Pointer: "/spec/x"}, result.Field{Object: gameserver, Pointer: "/status/x", Subresource: "status"},
	})
	want := []result.Patch{{Object: pod, Subresource: "status"}, {Object: gameserver}, {Object: gameserver, Subresource: "status"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
