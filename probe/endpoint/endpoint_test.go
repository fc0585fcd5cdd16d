package endpoint_test

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/probe/endpoint"
)

// A title is a label of metrics and appears in logs: it has no credentials of the URL.
func TestTitleHasNoCredentials(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://127.0.0.1:80/state":                      "http://127.0.0.1:80/state",
		"http://user:s3cret@127.0.0.1/state":             "http://127.0.0.1/state",
		"http://127.0.0.1/state?token=s3cret&a=1#s3cret": "http://127.0.0.1/state?a&token",
		"http://127.0.0.1/%zz?token=s3cret":              "url",
	} {
		e := endpoint.Endpoint{URL: address}
		if got := e.Title(); got != want || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	named := endpoint.Endpoint{URL: "http://127.0.0.1/", Name: "mine"}
	if named.Title() != "mine" {
		t.Errorf("%q", named.Title())
	}
}
