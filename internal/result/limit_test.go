package result_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/internal/result"
)

func TestTheTimeOfAnEntryIsNoDifference(t *testing.T) {
	t.Parallel()
	entry := result.Entry{State: result.Succeeded, Value: "3", Message: "players", At: time.Unix(1, 0)}
	for name, change := range map[string]func(*result.Entry){
		"state":   func(e *result.Entry) { e.State = result.Failed },
		"value":   func(e *result.Entry) { e.Value = "4" },
		"message": func(e *result.Entry) { e.Message = "none" },
		"":        func(e *result.Entry) { e.At = time.Unix(2, 0) },
	} {
		other := entry
		change(&other)
		if same := entry.Same(other); same != (name == "") {
			t.Errorf("with another %q the same: %t", name, same)
		}
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
		"azAZ09-_.x[@`{/:":              "azAZ09-_.x",
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
	})
}

func TestFitMessages(t *testing.T) {
	t.Parallel()
	of := func(n, size int) (all []int) {
		for range n {
			all = append(all, size)
		}
		return all
	}
	for name, tc := range map[string]struct {
		sizes map[string][]int // of messages, by owner
		space int
		cut   int
		want  map[string][]int
	}{
		"all fit":           {map[string][]int{"a": {10, 20}}, 100, 1024, map[string][]int{"a": {10, 20}}},
		"longer than any":   {map[string][]int{"a": {5000}}, 4000, 1024, map[string][]int{"a": {1024}}},
		"the long are cut":  {map[string][]int{"a": {1000, 10}}, 600, 512, map[string][]int{"a": {512, 10}}},
		"cut again":         {map[string][]int{"a": {1000, 1000}}, 600, 256, map[string][]int{"a": {256, 256}}},
		"nothing has room":  {map[string][]int{"a": {10}, "b": {5}}, -1, 0, map[string][]int{"a": {0}, "b": {0}}},
		"there are no more": {nil, -1, 1024, nil},
		"who says little keeps it": {
			map[string][]int{"loud": of(100, 1000), "quiet": {40}}, 1600, 8, map[string][]int{"loud": of(100, 8), "quiet": {40}},
		},
		"both say much":                     {map[string][]int{"a": of(10, 1000), "b": of(20, 1000)}, 6000, 128, map[string][]int{"a": of(10, 256), "b": of(20, 128)}},
		"the first of two that say as much": {map[string][]int{"a": {1000}, "b": {1000}}, 1600, 512, map[string][]int{"a": {512}, "b": {1000}}},
		"exactly":                           {map[string][]int{"a": {1000}}, 1004, 1024, map[string][]int{"a": {1000}}},
		"one too many":                      {map[string][]int{"a": {1000}}, 1003, 512, map[string][]int{"a": {512}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := map[string][]*string{}
			for owner, sizes := range tc.sizes {
				for _, size := range sizes {
					messages[owner] = append(messages[owner], new(strings.Repeat("x", size)))
				}
			}
			if cut := result.FitMessages(messages, tc.space); cut != tc.cut {
				t.Errorf("cut to %d, want %d", cut, tc.cut)
			}
			for owner, want := range tc.want {
				for i, m := range messages[owner] {
					if len(*m) != want[i] {
						t.Errorf("message %d of %s has %d bytes, want %d", i, owner, len(*m), want[i])
					}
				}
			}
		})
	}
}

func TestNativeConditions(t *testing.T) {
	t.Parallel()
	for condition, native := range map[corev1.PodConditionType]bool{
		"Ready": true, "ContainersReady": true, "PodScheduled": true, "KruisePodReady": true, "InPlaceUpdateReady": true,
		"Initialized": true, "DisruptionTarget": true, "PodReadyToStartContainers": true, "PodResizePending": true, "PodResizeInProgress": true,
		"AllContainersRestarting": true, "PodHasNetwork": true, "SidecarTerminated": true, "SidecarSetUpgradable": true, "ready": false, "example.com/Ready": false, "": false,
	} {
		if result.NativeCondition(condition) != native {
			t.Errorf("%q: native %t, want %t", condition, !native, native)
		}
	}
}
