package hotupdate_test

import (
	"fmt"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// Permanent errors are not retried, transient ones are.
func TestFailuresThatMayPassAreNotPermanent(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		hotupdate.ErrInvalid: true, hotupdate.ErrRefused: true, hotupdate.ErrDigest: true, hotupdate.ErrSignature: true, hotupdate.ErrTooLarge: true,
		hotupdate.ErrArchive: true, hotupdate.ErrPrecheck: true,
		hotupdate.ErrFetch: false, hotupdate.ErrBusy: false, hotupdate.ErrReload: false, hotupdate.ErrVerify: false, hotupdate.ErrTampered: false,
	} {
		if got := hotupdate.Permanent(&hotupdate.Failure{Phase: hotupdate.Fetching, Err: fmt.Errorf("source a: %w", err)}); got != want {
			t.Errorf("%v: %t, want %t", err, got, want)
		}
	}
}
