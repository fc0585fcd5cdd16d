package subset

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/internal/foreign"
)

// sameQuantity compares quantities by value: the API server writes quantities in another form than users do, and rounds
// them up to thousandths. A quantity that is out of bounds only equals its own text.
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
