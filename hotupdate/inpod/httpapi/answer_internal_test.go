package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// The status and Retry-After distinguish errors that the caller may retry from errors in its request.
func TestAnswersSayWhatIsWrongAndWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	cause := errors.New("no such host")
	for name, tt := range map[string]struct {
		err   error
		code  int
		again bool
		said  string
	}{
		"done":               {nil, 200, false, saidDone},
		"an update runs":     {hotupdate.ErrBusy, 409, true, ""},
		"files are restored": {ErrRestoring, 503, true, ""},
		"not there yet":      {ErrUnavailable, 503, true, ""},
		"the sidecar ends":   {ErrStopping, 503, false, ""},
		"was not restored":   {ErrUnrestored, 409, false, ""},
		"wrong":              {fmt.Errorf("%w: version", hotupdate.ErrInvalid), 400, false, "version"},
		"no such revision":   {fmt.Errorf("%w: a", hotupdate.ErrUnknownRevision), 404, false, "a"},
		"refused":            {&refusal{http.StatusForbidden, "not yours"}, 403, false, "not yours"},
		"not downloaded":     {&hotupdate.Failure{Phase: hotupdate.Fetching, Err: cause}, 500, false, "failed to download file: no such host"},
		"not accepted":       {&hotupdate.Failure{Phase: hotupdate.Verifying, Err: cause, RolledBack: true}, 500, false, "update failed: "},
	} {
		for _, accept := range []string{"", "application/json"} {
			r := httptest.NewRequest(http.MethodPost, "/update", http.NoBody)
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			(&handlers{}).answer(w, r, "v1", hotupdate.Result{}, tt.err)
			if w.Code != tt.code || (w.Header().Get("Retry-After") != "") != tt.again {
				t.Errorf("%s, %q: %d, Retry-After %q; want %d, %t", name, accept, w.Code, w.Header().Get("Retry-After"), tt.code, tt.again)
			}
			if tt.err != nil && !strings.Contains(w.Body.String(), tt.said) {
				t.Errorf("%s, %q: %s", name, accept, w.Body)
			}
		}
	}
}
