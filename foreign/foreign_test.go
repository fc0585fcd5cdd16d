package foreign_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/testkit/watchdog"
)

func TestQuantitiesThatCannotBeComparedAreNotReadable(t *testing.T) {
	t.Parallel()
	for text, readable := range map[string]bool{
		"0": true, "100m": true, "-1": true, "1.5Gi": true, "1e3": true, "1E": true, "1Ei": true, "12e18": true, "1e-9": true, "1e-18": true,
		"1e2147483647": false, "1e-2147483648": false, "1e300000000": false, "1e-300000000": false, "1e4294967296": false, "1e9223372036854775808": false,
		"1E19": false, "0.1e300000000": false, "": false, "x": false, "1e": false, "1e5.5": false,
		strings.Repeat("9", 64): true, strings.Repeat("9", 65): false, "1" + strings.Repeat("0", 200_000): false,
	} {
		watchdog.Watch(t, func() {
			quantity, err := foreign.Quantity(text)
			if readable != (err == nil) || err != nil && !errors.Is(err, foreign.ErrUnreadable) {
				t.Errorf("%.40q: %v", text, err)
			}
			if err == nil {
				quantity.Cmp(resource.MustParse("100m"))
			}
		})
	}
}

func TestQuantitiesThatTheAPIServerAcceptsAreChecked(t *testing.T) {
	t.Parallel()
	for text, readable := range map[string]bool{"100m": true, "8E": true, "0.5": true, "1e2147483647": false, "1e300000000": false, "10e2147483647": false, "1e19": false} {
		quantity := resource.MustParse(text)
		if err := foreign.CheckQuantity(quantity); readable != (err == nil) {
			t.Errorf("%s: %v", text, err)
		}
		if !readable {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": quantity}}}}}}
			if err := foreign.Pod(pod); err == nil || !strings.Contains(err.Error(), "container app: resources.limits[cpu]") {
				t.Errorf("in a pod: %v", err)
			}
		}
	}
}

func TestTimesThatCannotBeComputedWithAreNotReadable(t *testing.T) {
	t.Parallel()
	for text, readable := range map[string]bool{
		"2026-11-25T04:00:00Z": true, "2026-11-25T04:00:00.123456789+01:00": true, "2200-12-31T23:59:59Z": true,
		"9999-12-31T23:59:59Z": false, "0001-01-01T00:00:00Z": false, "1969-12-31T23:59:59Z": false, "2201-01-01T00:00:00Z": false,
		"yesterday": false, "": false, "2026-11-25T04:00:00." + strings.Repeat("1", 100_000) + "Z": false,
	} {
		if _, err := foreign.Time(text); readable != (err == nil) || err != nil && (!errors.Is(err, foreign.ErrUnreadable) || len(err.Error()) > 300) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// typed is what is decoded in the tests of JSON.
type typed struct {
	metav1.ObjectMeta

	At        metav1.Time                            `json:"at"`
	Texts     map[string]string                      `json:"texts"`
	Resources map[string]corev1.ResourceRequirements `json:"resources"`
	Raw       json.RawMessage                        `json:"raw"`
	List      []*resource.Quantity                   `json:"list"`
}

const hostile = "1e-300000000" // resource.ParseQuantity does not return

func TestJSONIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, why string }{
		"typed":                          {`{"at":"2026-11-25T04:00:00Z","texts":{"a":"b"},"resources":{"log":{"requests":{"cpu":"100m","memory":1e6}}},"list":["1Gi"]}`, ""},
		"what looks like one is text":    {`{"texts":{"commit":"1e300000","age":"9999-01-01T00:00:00Z"},"raw":"1e300000000","unknown":["1e300000000"]}`, ""},
		"null":                           {`null`, ""},
		"a quantity":                     {`{"resources":{"log":{"requests":{"cpu":"` + hostile + `"}}}}`, "resources: log: requests: cpu"},
		"with space that is none":        {`{"resources":{"log":{"requests":{"cpu":"` + "\u2003" + hostile + `"}}}}`, "exponent"},
		"a number":                       {`{"resources":{"log":{"requests":{"cpu":` + hostile + `}}}}`, "exponent"},
		"that panics":                    {`{"resources":{"log":{"limits":{"cpu":"1e2147483647"}}}}`, "exponent"},
		"overwritten by the same key":    {`{"resources":{"log":{"limits":{"cpu":"` + hostile + `"}}},"resources":{}}`, "exponent"},
		"by a key in upper case":         {`{"RESOURCES":{"log":{"Limits":{"cpu":"` + hostile + `"}}}}`, "exponent"},
		"in a list":                      {`{"list":["1","` + hostile + `"]}`, "exponent"},
		"with many digits":               {`{"list":["1` + strings.Repeat("0", 100_000) + `"]}`, "at most 64 bytes"},
		"a year":                         {`{"at":"9999-01-01T00:00:00Z"}`, "the year"},
		"a year with escaped characters": {`{"at":"\u0039999-01-01T00:00:00Z"}`, "the year"},
		"a year in embedded fields":      {`{"creationTimestamp":"9999-01-01T00:00:00Z"}`, "the year"},
		"deep":                           {strings.Repeat("[", 65) + strings.Repeat("]", 65), "levels deep"},
		"deep where it is not decoded":   {`{"raw":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "levels deep"},
		"long":                           {`"` + strings.Repeat("x", foreign.MaxAnnotation) + `"`, "at most 262144 bytes"},
		"no JSON":                        {`{"at"`, "unexpected end"},
		"another type":                   {`{"texts":[1` + strings.Repeat("1", 10_000) + `]}`, "cannot unmarshal"},
		"a string without end":           {`{"at":"9999-`, "unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watchdog.Watch(t, func() {
				err := foreign.JSON(tc.text, &typed{})
				if (tc.why == "") != (err == nil) || err != nil && (!errors.Is(err, foreign.ErrUnreadable) || !strings.Contains(err.Error(), tc.why) || len(err.Error()) > 600) {
					t.Errorf("got %v, want %q", err, tc.why)
				}
			})
		})
	}
}

func TestTextIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text             string
		limit            int
		cut, withAMarker string
	}{
		"fits":                {"abc", 3, "abc", "abc"},
		"cut":                 {"abcd", 3, "abc", "abc…"},
		"between characters":  {"aéé", 4, "aé", "aé…"},
		"no character fits":   {"日", 2, "", "…"},
		"bytes that are none": {"a\xffb", 10, "a\uFFFDb", "a\uFFFDb"},
		"half a one at end":   {"ab\xe6\x97", 3, "ab", "ab…"},
	} {
		if got := foreign.Cut(tc.text, tc.limit); got != tc.cut {
			t.Errorf("%s: got %q, want %q", name, got, tc.cut)
		}
		if got := foreign.Shorten(tc.text, tc.limit); got != tc.withAMarker {
			t.Errorf("%s: got %q, want %q", name, got, tc.withAMarker)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("aéé", 4)
	f.Add("\xff日", 2)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(limit, 0)
		if c := foreign.Cut(text, limit); len(c) > limit || !utf8.ValidString(c) {
			t.Errorf("cut %q to %q", text, c)
		}
	})
}
