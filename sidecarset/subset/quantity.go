package subset

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/foreign"
)

// sameQuantity: the API server writes quantities in another form than people do, and rounds them up to thousandths. One that is out
// of bounds is the same as nothing but its own text.
func sameQuantity(a, b string) bool {
	left, err := foreign.Quantity(a)
	if err != nil {
		return false
	}
	right, err := foreign.Quantity(b)
	if err != nil {
		return false
	}
	left.RoundUp(resource.Milli)
	right.RoundUp(resource.Milli)
	return left.Cmp(right) == 0
}
