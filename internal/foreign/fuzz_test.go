package foreign_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// FuzzQuantity makes quantities of their parts, since random bytes rarely are one.
func FuzzQuantity(f *testing.F) {
	for _, exponent := range []int64{0, 3, 18, 2147483647, -2147483648, 300000000, -300000000, 1 << 62} {
		f.Add("1", "e", exponent)
	}
	f.Add("0.00000000000000001", "E", int64(18))
	f.Add("99999999999999999999", "Ei", int64(0))
	f.Fuzz(func(t *testing.T, digits, suffix string, exponent int64) {
		text := digits + suffix
		if strings.EqualFold(suffix, "e") {
			text += fmt.Sprint(exponent)
		}
		watchdog.Watch(t, func() {
			quantity, err := foreign.Quantity(text)
			if err != nil {
				if !errors.Is(err, foreign.ErrUnreadable) || len(err.Error()) > 400 {
					t.Errorf("%.100q: %v", text, err)
				}
				return
			}
			use(t, quantity)
			var decoded []resource.Quantity
			if err := foreign.JSON(`["`+text+`"]`, &decoded); err == nil {
				use(t, decoded[0])
			}
		})
	})
}

// use does with a quantity what Refit does.
func use(t *testing.T, quantity resource.Quantity) {
	t.Helper()
	for _, other := range []string{"0", "100m", "8E", "1n", "1Ki"} {
		other := resource.MustParse(other)
		if quantity.Cmp(other)+other.Cmp(quantity) != 0 {
			t.Errorf("%s and %s are compared in two ways", &quantity, &other)
		}
		sum := quantity.DeepCopy()
		sum.Add(other)
		sum.RoundUp(resource.Milli)
	}
	if text := quantity.String(); len(text) > 2*foreign.MaxQuantity {
		t.Errorf("%s is long", text)
	}
	quantity.Value()
	quantity.MilliValue()
}

// FuzzJSON: whatever is decoded without an error has only quantities and times that can be used.
func FuzzJSON(f *testing.F) {
	f.Add(`{"at":"2026-11-25T04:00:00Z","resources":{"log":{"requests":{"cpu":"100m"}}},"list":["1Gi",1e3]}`)
	f.Add(`{"list":["1e300000000",1e-300000000,"\u0031e5"],"list":null}`)
	f.Add(`{"at":"9999-01-01T00:00:00Z","At":"0000-01-01T00:00:00+23:59"}`)
	f.Add(`{"resources":{"log":{"Requests":{"cpu":"` + "\u00a0" + `1e2147483647"}}}}`)
	f.Add(strings.Repeat(`{"raw":[`, 40))
	f.Fuzz(func(t *testing.T, text string) {
		watchdog.Watch(t, func() {
			var got typed
			if err := foreign.JSON(text, &got); err != nil {
				if !errors.Is(err, foreign.ErrUnreadable) {
					t.Errorf("%v", err)
				}
				return
			}
			for _, quantity := range got.List {
				if quantity != nil {
					use(t, *quantity)
				}
			}
			for _, resources := range got.Resources {
				if err := foreign.CheckResources(resources); err != nil {
					t.Errorf("decoded and not readable: %v", err)
				}
			}
			if year := got.At.UTC().Year(); !got.At.IsZero() && (year < foreign.MinYear || year > foreign.MaxYear) {
				t.Errorf("the year %d", year)
			}
		})
	})
}

// FuzzObject makes pods of their parts: what is decoded can be compared and printed, and is bounded whatever the text is.
func FuzzObject(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed)
	}
	f.Add([]byte{1, 1, 1, 1, 2, 2, 2, 255, 254, 253, 1, 1, 1, 2, 3, 4, 5, 1, 2, 1, 2, 1, 2})
	f.Fuzz(func(t *testing.T, seed []byte) {
		text := hostile.JSON(&corev1.Pod{}, seed)
		watchdog.Watch(t, func() {
			var pod corev1.Pod
			if err := foreign.Object(text, &pod); err != nil {
				if !errors.Is(err, foreign.ErrUnreadable) || len(err.Error()) > 10*foreign.MaxQuantity+600 || !utf8.ValidString(err.Error()) {
					t.Errorf("%.2000v", err)
				}
				return
			}
			if err := foreign.Pod(&pod); err != nil {
				t.Errorf("decoded and not readable: %v", err)
			}
			if year := pod.CreationTimestamp.UTC().Year(); !pod.CreationTimestamp.IsZero() && (year < foreign.MinYear || year > foreign.MaxYear) {
				t.Errorf("the year %d", year)
			}
			if n := len(pod.Spec.Containers); n > foreign.MaxElements {
				t.Errorf("%d containers", n)
			}
		})
	})
}
