package result_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
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

func TestFitMessages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sizes []int // of messages
		limit int
		cut   int
		want  []int
	}{
		"all fit":           {[]int{10, 20}, 100, 1024, []int{10, 20}},
		"longer than any":   {[]int{5000}, 4000, 1024, []int{1024}},
		"the long are cut":  {[]int{1000, 10}, 600, 512, []int{512, 10}},
		"cut again":         {[]int{1000, 1000}, 600, 256, []int{256, 256}},
		"nothing has room":  {[]int{10}, -1, 0, []int{0}},
		"there are no more": {nil, -1, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := make([]*string, len(tc.sizes))
			for i, size := range tc.sizes {
				text := strings.Repeat("x", size)
				messages[i] = &text
			}
			cut, err := result.FitMessages(messages, tc.limit, func() (int, error) {
				total := 0
				for _, m := range messages {
					total += len(*m)
				}
				return total, nil
			})
			if err != nil || cut != tc.cut {
				t.Errorf("cut to %d, %v; want %d", cut, err, tc.cut)
			}
			for i, m := range messages {
				if len(*m) != tc.want[i] {
					t.Errorf("message %d has %d bytes, want %d", i, len(*m), tc.want[i])
				}
			}
		})
	}
	broken := errors.New("cannot be measured")
	if _, err := result.FitMessages(nil, 1, func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestNativeConditions(t *testing.T) {
	t.Parallel()
	for condition, native := range map[corev1.PodConditionType]bool{
		"Ready": true, "ContainersReady": true, "PodScheduled": true, "KruisePodReady": true, "InPlaceUpdateReady": true,
		"PodHasNetwork": true, "ready": false, "example.com/Ready": false, "": false,
	} {
		if result.NativeCondition(condition) != native {
			t.Errorf("%q: native %t, want %t", condition, !native, native)
		}
	}
}
