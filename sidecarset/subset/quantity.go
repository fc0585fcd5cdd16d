package subset

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of a quantity that is computed with: a comparison of 1e300000000 with 1 takes minutes, and one of 1e2147483647 panics.
const (
	maxQuantity = 48 // bytes
	maxExponent = 18
)

// sameQuantity: the API server writes quantities in another form than people do, and rounds them up to thousandths. One that is out
// of bounds is the same as nothing but its own text.
func sameQuantity(a, b string) bool {
	left, ok := quantity(a)
	right, readable := quantity(b)
	if !ok || !readable {
		return false
	}
	left.RoundUp(resource.Milli)
	right.RoundUp(resource.Milli)
	return left.Cmp(right) == 0
}

func quantity(text string) (resource.Quantity, bool) {
	if len(text) > maxQuantity {
		return resource.Quantity{}, false
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 && at < len(text)-1 { // "E" at the end is a suffix
		exponent, err := strconv.ParseInt(text[at+1:], 10, 32)
		if err != nil || exponent < -maxExponent || exponent > maxExponent {
			return resource.Quantity{}, false
		}
	}
	value, err := resource.ParseQuantity(text)
	return value, err == nil
}
