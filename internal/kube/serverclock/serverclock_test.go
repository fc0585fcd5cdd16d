package serverclock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/kube/serverclock"
)

// The Date header has a resolution of a second, and the answer takes its time: up to two seconds are no difference.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ahead time.Duration
		exact bool // Offset is zero; else it is ahead, up to the resolution of the header
	}{
		"together":        {ahead: 0, exact: true},
		"a second ahead":  {ahead: time.Second, exact: true},
		"a second behind": {ahead: -time.Second, exact: true},
		"4 s ahead":       {ahead: 4 * time.Second},
		"an hour ahead":   {ahead: time.Hour},
		"a day behind":    {ahead: -24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(700 * time.Millisecond) // that the header does not tell
				var clock serverclock.Clock
				transport := clock.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
					date := time.Now().Add(tt.ahead).UTC().Format(http.TimeFormat)
					return &http.Response{Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
				}))
				response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if got := clock.Offset(); tt.exact && got != 0 || !tt.exact && (got-tt.ahead).Abs() > time.Second {
					t.Errorf("Offset = %v of a clock that is %v ahead", got, tt.ahead)
				}
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
