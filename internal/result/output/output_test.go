package output_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/result/output"
)

func TestPointer(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/spec/opsState", "/spec/a~1b/~01", "/metadata/labels/a~1b", "/status/0/x", "/data/k", "/spec", "/metadata/annotations/a", "/spec/labels"} {
		tokens, err := output.ParsePointer(good)
		if err != nil {
			t.Errorf("%s: %v", good, err)
		}
		if back := output.FormatPointer(tokens); back != good {
			t.Errorf("%s came back as %s", good, back)
		}
	}
	for _, bad := range []string{"", "/", "spec/x", "/spec//x", "/spec/-", "/spec/a~2", "/kind", "/apiVersion", "/metadata",
		"/metadata/name", "/metadata/labels", "/metadata/uid/x", "$.spec"} {
		if _, err := output.ParsePointer(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add("/spec/a~1b/~01")
	f.Fuzz(func(t *testing.T, pointer string) {
		if tokens, err := output.ParsePointer(pointer); err == nil && output.FormatPointer(tokens) != pointer {
			t.Errorf("%q came back as %q", pointer, output.FormatPointer(tokens))
		}
	})
}

func TestOutputsAreValidated(t *testing.T) {
	t.Parallel()
	bad := map[string]output.Output{
		"label key":            output.Label{Object: pod, Key: "a b"},
		"annotation key":       output.Annotation{Object: pod, Key: ""},
		"kubelet's condition":  output.Condition{Object: pod, Type: "Ready"},
		"condition of another": output.Condition{Object: gameserver, Type: "Idle"},
		"object without name":  output.Field{Object: output.Object{Version: "v1", Resource: "pods"}, Pointer: "/spec/x"},
		"pointer":              output.Field{Object: gameserver, Pointer: "spec.x"},
		"subresource":          output.Field{Object: gameserver, Pointer: "/spec/x", Subresource: "scale"},
		"field type":           output.Field{Object: gameserver, Pointer: "/spec/x", Type: "int"},
		"no state":             output.Markers{Object: pod, Policies: []output.Policy{{Labels: map[string]string{"k": "a"}}}},
		"marker without name":  output.Markers{Object: output.Object{Version: "v1", Resource: "pods"}, Policies: policies()},
		"state twice":          output.Markers{Object: pod, Policies: []output.Policy{{State: "a"}, {State: "a"}}},
		"label value":          output.Markers{Object: pod, Policies: []output.Policy{{State: "a", Labels: map[string]string{"k": "a b"}}}},
		"marker label":         output.Markers{Object: pod, Policies: []output.Policy{{State: "a", Labels: map[string]string{"a b": ""}}}},
		"marker annotation":    output.Markers{Object: pod, Policies: []output.Policy{{State: "a", Annotations: map[string]string{"/": ""}}}},
		"marker pointer":       output.Markers{Object: pod, Policies: []output.Policy{{State: "a", Fields: map[string]any{"x": 1}}}},
		"event":                output.Event{Object: pod},
		"gauge":                output.Gauge{Name: "1x"},
		"empty gauge":          output.Gauge{},
		"gauge of words":       output.Gauge{Name: "players total"},
		"gauge with a hyphen":  output.Gauge{Name: "players-total"},
		"gauge from 0":         output.Gauge{Name: "0x"},
		"gauge from 9":         output.Gauge{Name: "9x"},
	}
	for name, target := range bad {
		if target.Validate() == nil {
			t.Errorf("%s: no error for %+v", name, target)
		}
	}
	good := []output.Output{
		output.Label{Object: pod, Key: "a/b"}, output.Annotation{Object: gameserver, Key: "k"}, output.Condition{Object: pod, Type: "game.kruise.io/idle"},
		output.Field{Object: gameserver, Pointer: "/spec/opsState", Subresource: "status", Type: output.NumberField},
		output.ConfigMapKey("ns", "n", "k"), output.Markers{Object: pod, Policies: policies()},
		output.Event{Object: pod, Reason: "Probe"}, output.Gauge{Name: "players_total"},
		output.Gauge{Name: ":job"}, output.Gauge{Name: "_0"}, output.Gauge{Name: "azAZ09"},
	}
	for _, target := range good {
		if err := target.Validate(); err != nil {
			t.Errorf("%+v: %v", target, err)
		}
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	metrics := output.Object{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods", Namespace: "games", Name: "gs-0"}
	got := output.Objects([]output.Output{
		output.Label{Object: metrics, Key: "a"}, output.Label{Object: pod, Key: "a"}, output.Annotation{Object: pod, Key: "b"}, output.Gauge{Name: "g"},
		output.Field{Object: gameserver, Pointer: "/spec/x"}, output.Field{Object: gameserver, Pointer: "/status/x", Subresource: "status"},
	})
	want := []output.Patch{{Object: metrics}, {Object: pod, Subresource: "status"}, {Object: gameserver}, {Object: gameserver, Subresource: "status"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
