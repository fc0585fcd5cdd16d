// Package foreign reads text that others have written: annotations, quantities, times and messages. Its results are typed
// and bounded, so that comparing them is cheap and cannot panic. For other text it returns why it is not readable. It does
// not know what the text means.
package foreign

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of readable text.
const (
	MaxQuantity  = 64 // bytes of a quantity
	MaxExponent  = 18 // of ten: 1E, the largest suffix of a quantity
	MaxTime      = 64 // bytes of a time
	MinYear      = 1970
	MaxYear      = 2200 // times in nanoseconds since 1970 end in 2262
	maxMantissa  = 256  // bits of a quantity without its exponent: more than MaxQuantity digits
	maxErrorText = 256  // bytes of the text that are quoted in an error
)

// ErrUnreadable is wrapped by every error of this package.
var ErrUnreadable = errors.New("not readable")

func unreadable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnreadable, Cut(fmt.Sprintf(format, args...), maxErrorText))
}

// Quantity reads a quantity of a resource. Unlike resource.ParseQuantity it refuses exponents that make comparisons of the
// quantity panic, or last for hours.
func Quantity(text string) (resource.Quantity, error) {
	text = strings.TrimSpace(text)
	if len(text) > MaxQuantity {
		return resource.Quantity{}, unreadable("a quantity has at most %d bytes, this one has %d", MaxQuantity, len(text))
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		exponent, err := strconv.ParseInt(text[at+1:], 10, 64)
		if errors.Is(err, strconv.ErrRange) || exponent > MaxExponent || exponent < -MaxExponent {
			return resource.Quantity{}, unreadable("quantity %q: the exponent is beyond ±%d", text, MaxExponent)
		}
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, unreadable("quantity %q: %v", text, err)
	}
	return quantity, CheckQuantity(quantity)
}

// CheckQuantity checks a decoded quantity; nil means that it can be compared and printed.
func CheckQuantity(quantity resource.Quantity) error {
	copied := quantity.DeepCopy() // AsDec changes it
	decimal := copied.AsDec()
	if decimal.Scale() > MaxExponent || decimal.Scale() < -MaxExponent || decimal.UnscaledBig().BitLen() > maxMantissa {
		return unreadable("the exponent or the number of digits of a quantity is beyond %d or %d", MaxExponent, MaxQuantity)
	}
	return nil
}

// CheckResources returns an error with the name of a resource whose quantity is not readable.
func CheckResources(resources corev1.ResourceRequirements) error {
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"requests", resources.Requests}, {"limits", resources.Limits}} {
		if err := checkList(list.name, list.of); err != nil {
			return err
		}
	}
	return nil
}

func checkList(field string, list corev1.ResourceList) error {
	for name, quantity := range list {
		if err := CheckQuantity(quantity); err != nil {
			return fmt.Errorf("%s[%s]: %w", field, Cut(string(name), maxErrorText), err)
		}
	}
	return nil
}

// Time reads a time in the format of RFC 3339, as the API uses it.
func Time(text string) (time.Time, error) {
	if len(text) > MaxTime {
		return time.Time{}, unreadable("a time has at most %d bytes, this one has %d", MaxTime, len(text))
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, unreadable("%v", err)
	}
	if year := at.UTC().Year(); year < MinYear || year > MaxYear {
		return time.Time{}, unreadable("time %q: the year is not between %d and %d", text, MinYear, MaxYear)
	}
	return at, nil
}

// maxDuration is the longest duration that is read, in bytes: no useful one is longer.
const maxDuration = 64

// Duration reads a duration as time.ParseDuration does, if it is at most 64 bytes long.
func Duration(text string) (time.Duration, error) {
	if len(text) > maxDuration {
		return 0, unreadable("a duration has at most %d bytes, this one has %d", maxDuration, len(text))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, unreadable("%v", err)
	}
	return d, nil
}
