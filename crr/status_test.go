package crr_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/crr"
)

func TestEarlier(t *testing.T) {
	t.Parallel()
	never, soon, late := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, tt := range [][3]time.Time{{never, never, never}, {never, soon, soon}, {soon, never, soon}, {soon, late, soon}, {late, soon, soon}} {
		if got := crr.Earlier(tt[0], tt[1]); !got.Equal(tt[2]) {
			t.Errorf("Earlier(%v, %v) = %v", tt[0], tt[1], got)
		}
	}
}
