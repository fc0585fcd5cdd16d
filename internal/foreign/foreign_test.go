package foreign_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/test/kit/watchdog"
)

func TestQuantitiesThatCannotBeComparedAreNotReadable(t *testing.T) {
	t.Parallel()
	padded := " 1Gi\n" // as a text editor may leave it in an annotation
	for text, readable := range map[string]bool{
		padded: true, "0": true, "100m": true, "-1": true, "1.5Gi": true, "1e3": true, "1E": true, "1Ei": true, "12e18": true, "1e-9": true, "1e-18": true,
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
		"1970-01-01T00:00:00Z": true, "1970-01-01T00:30:00+01:00": false, "2200-12-31T23:30:00-01:00": false,
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
	Micro     metav1.MicroTime                       `json:"micro"`
	Plain     time.Time                              `json:"plain"`
	Texts     map[string]string                      `json:"texts"`
	Resources map[string]corev1.ResourceRequirements `json:"resources"`
	Raw       json.RawMessage                        `json:"raw"`
	List      []*resource.Quantity                   `json:"list"`
}

const hung = "1e-300000000" // resource.ParseQuantity does not return

func TestJSONIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, why string }{
		"typed":                          {`{"at":"2026-11-25T04:00:00Z","texts":{"a":"b"},"resources":{"log":{"requests":{"cpu":"100m","memory":1e6}}},"list":["1Gi"]}`, ""},
		"what looks like one is text":    {`{"texts":{"commit":"1e300000","age":"9999-01-01T00:00:00Z"},"raw":"1e300000000","unknown":["1e300000000"]}`, ""},
		"null":                           {`null`, ""},
		"a quantity":                     {`{"resources":{"log":{"requests":{"cpu":"` + hung + `"}}}}`, "resources: log: requests: cpu"},
		"with space that is none":        {`{"resources":{"log":{"requests":{"cpu":"` + "\u2003" + hung + `"}}}}`, "exponent"},
		"a number":                       {`{"resources":{"log":{"requests":{"cpu":` + hung + `}}}}`, "exponent"},
		"that panics":                    {`{"resources":{"log":{"limits":{"cpu":"1e2147483647"}}}}`, "exponent"},
		"overwritten by the same key":    {`{"resources":{"log":{"limits":{"cpu":"` + hung + `"}}},"resources":{}}`, "exponent"},
		"by a key in upper case":         {`{"RESOURCES":{"log":{"Limits":{"cpu":"` + hung + `"}}}}`, "exponent"},
		"in a list":                      {`{"list":["1","` + hung + `"]}`, "exponent"},
		"with many digits":               {`{"list":["1` + strings.Repeat("0", 100_000) + `"]}`, "at most 64 bytes"},
		"a year":                         {`{"at":"9999-01-01T00:00:00Z"}`, "the year"},
		"a year with escaped characters": {`{"at":"\u0039999-01-01T00:00:00Z"}`, "the year"},
		"a year in embedded fields":      {`{"creationTimestamp":"9999-01-01T00:00:00Z"}`, "the year"},
		"a year in microseconds":         {`{"micro":"9999-01-01T00:00:00.000000Z"}`, "the year"},
		"a year of a time of Go":         {`{"plain":"9999-01-01T00:00:00Z"}`, "the year"},
		"as deep as may be":              {`{"raw":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, ""},
		"as long as may be":              {`{"raw":"` + strings.Repeat("x", foreign.MaxAnnotation-10) + `"}`, ""},
		"a list as long as may be":       {`{"list":[` + strings.Repeat("null,", foreign.MaxElements-1) + `null]}`, ""},
		"deep":                           {strings.Repeat("[", 65) + strings.Repeat("]", 65), "levels deep"},
		"deep where it is not decoded":   {`{"raw":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "levels deep"},
		"long":                           {`"` + strings.Repeat("x", foreign.MaxAnnotation) + `"`, "at most 262144 bytes"},
		"a long list":                    {`{"list":[` + strings.Repeat("null,", foreign.MaxElements) + `null]}`, "more than 10000 elements"},
		"many keys":                      {`{"texts":{` + strings.Repeat(`"a":"",`, foreign.MaxElements) + `"a":""}}`, "more than 10000 elements"},
		"many values":                    {`{"raw":[` + strings.Repeat("[0,0],", foreign.MaxElements/2) + strings.Repeat("[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],", foreign.MaxElements/2-1) + `0]}`, "more than 100000 values"},
		"a key in another script's case": {`{"lıst":["1"],"reſources":{"log":{"limits":{"cpu":"` + hung + `"}}}}`, "exponent"},
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

func TestObjectsMayBeLargerThanAnnotations(t *testing.T) {
	t.Parallel()
	large := `{"texts":{"a":"` + strings.Repeat("x", foreign.MaxAnnotation) + `"}}`
	if err := foreign.Object([]byte(large), &typed{}); err != nil {
		t.Error(err)
	}
	tooLarge := []byte(`"` + strings.Repeat("x", foreign.MaxObject) + `"`)
	for name, err := range map[string]error{
		"object":   foreign.Object(tooLarge, &typed{}),
		"check":    foreign.CheckObject(tooLarge, &typed{}),
		"quantity": foreign.CheckObject([]byte(`{"list":["`+hung+`"]}`), &typed{}),
		"deep":     foreign.CheckObject([]byte(strings.Repeat("[", 100_000)), nil),
	} {
		if !errors.Is(err, foreign.ErrUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := foreign.Value([]byte(`{"runAsUser":9007199254740993}`))
	if want := any(map[string]any{"runAsUser": json.Number("9007199254740993")}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// What is refused has taken no memory, however much it would take when it is decoded.
func TestWhatIsRefusedIsNotDecoded(t *testing.T) { //nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
	for name, text := range map[string]string{
		"containers": `{"spec":{"containers":[` + strings.Repeat("{},", 500_000) + `{}]}}`,
		"levels":     strings.Repeat(`{"spec":`, 500_000),
		"values":     `{"spec":{"containers":[` + strings.Repeat(`{"env":[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]},`, 9_000) + `{}]}}`,
		"quantity":   `{"spec":{"overhead":{"cpu":"` + hung + `"},"containers":[` + strings.Repeat("{},", 5_000) + `{}]}}`,
	} {
		raw := []byte(text)
		if allocated := testing.AllocsPerRun(3, func() {
			if foreign.Object(raw, &corev1.Pod{}) == nil {
				t.Errorf("%s: decoded", name)
			}
		}); allocated > 20_000 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
}

func TestSelectorsAreBounded(t *testing.T) {
	t.Parallel()
	values := func(n int) (values []string) {
		for i := range n {
			values = append(values, strconv.Itoa(i))
		}
		return values
	}
	in := func(lists int, values []string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: slices.Repeat([]metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}, lists)}
	}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		selects  bool // the pod with the label app: 1
		why      string
	}{
		"none":              {nil, false, ""},
		"everything":        {&metav1.LabelSelector{}, true, ""},
		"of labels":         {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "1"}}, true, ""},
		"as many as may be": {in(100, values(10)), true, ""},
		"too many":          {in(101, values(1)), false, "at most 100 labels and expressions"},
		"too many values":   {in(1, values(1001)), false, "at most 1000 values"},
		"invalid":           {&metav1.LabelSelector{MatchLabels: map[string]string{strings.Repeat("x", 100_000): ""}}, false, "x"},
	} {
		selector, err := foreign.Selector(tc.selector)
		if (tc.why == "") != (err == nil) || err != nil && (!errors.Is(err, foreign.ErrUnreadable) || !strings.Contains(err.Error(), tc.why) || len(err.Error()) > 400) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && selector.Matches(labels.Set{"app": "1"}) != tc.selects {
			t.Errorf("%s: selects the pod: %v", name, !tc.selects)
		}
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
