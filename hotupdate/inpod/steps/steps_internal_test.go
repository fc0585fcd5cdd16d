package steps

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe/endpoint"
)

// Address and port are the reference implementation's way to write a URL.
func TestURLOfARequestToTheProgram(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		request Request
		want    string // empty: refused
	}{
		"a URL":                             {Request{URL: "https://app/reload?x=1"}, "https://app/reload?x=1"},
		"a URL, whatever the address":       {Request{URL: "http://app/reload", Address: "other", Port: 1}, "http://app/reload"},
		"an address":                        {Request{Address: "app"}, "http://app"},
		"an address and a port":             {Request{Address: "127.0.0.1", Port: 8080}, "http://127.0.0.1:8080"},
		"an address with a path":            {Request{Address: "app/reload", Port: 8080}, "http://app:8080/reload"},
		"an address with a scheme":          {Request{Address: "https://app/a/b", Port: 8443}, "https://app:8443/a/b"},
		"an address with a scheme, no port": {Request{Address: "https://app/a"}, "https://app/a"},
		"an address of IPv6":                {Request{Address: "fd00::1", Port: 80}, "http://[fd00::1]:80"},
		"nothing":                           {Request{}, ""},
		"a port alone":                      {Request{Port: 80}, ""},
		"another scheme":                    {Request{URL: "ftp://app/reload"}, ""},
		"no host":                           {Request{URL: "http:///reload"}, ""},
		"no method":                         {Request{URL: "http://app", Method: "A B"}, ""},
	} {
		call, err := tt.request.call()
		if (err == nil) != (tt.want != "") || err == nil && call.URL != tt.want {
			t.Errorf("%s: %s, %v", name, call.URL, err)
		}
	}
	full := Request{URL: "http://app", Method: http.MethodPut, Headers: map[string]string{"x-key": "k"}, Body: "now", ExpectedStatusCode: 202}
	call, err := full.call()
	if diff := cmp.Diff(action.Call{Method: "PUT", URL: "http://app", Header: http.Header{"X-Key": {"k"}}, Body: "now", ExpectedStatus: 202}, call); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if call, _ := (&Request{URL: "http://app"}).call(); call.Method != http.MethodPost {
		t.Errorf("method %q", call.Method)
	}
}

// Names are in messages: a step of a chain is known by what it does, unless it has one of its own.
func TestStepsAreNamedAndBounded(t *testing.T) {
	t.Parallel()
	sig := &Signal{Config: process.Config{Comm: "game"}, SignalName: "SIGHUP"}
	for want, a := range map[string]Action{
		"signal SIGHUP":         {Signal: sig},
		"request POST app:8080": {Request: &Request{URL: "http://user:s3cret@app:8080/reload?token=s3cret"}},
		"exec nginx":            {Exec: []string{"nginx", "-t"}},
		"touch stamp":           {Touch: "stamp"},
		"mine":                  {Name: "mine", Touch: "stamp"},
	} {
		a.TimeoutSeconds, a.Attempts, a.PauseSeconds = 1.5, 3, 0.5
		made, err := Actions("reload", []Action{a}, plugin.Host{})
		if err != nil || made[0].Name != want || made[0].Timeout != 1500*time.Millisecond || made[0].Attempts != 3 || made[0].Pause != 500*time.Millisecond {
			t.Errorf("%s: %+v, %v", want, made, err)
		}
	}
	for name, tt := range map[string]struct {
		action Action
		says   string
	}{
		"nothing":                     {Action{Name: "x"}, "reload[1]: want exactly one of signal, request, exec and touch, 0 are given"},
		"two":                         {Action{Touch: "a", Exec: []string{"b"}}, "exactly one of signal, request, exec and touch, 2 are given"},
		"a signal that is none":       {Action{Signal: &Signal{Config: process.Config{Comm: "game"}, SignalName: "SIGNONE"}}, "SIGNONE"},
		"a signal to every process":   {Action{Signal: &Signal{SignalName: "SIGHUP"}}, "no condition set"},
		"a request to nobody":         {Action{Request: &Request{}}, "want url, or address and port"},
		"a signal, and a touch of it": {Action{Signal: sig, Touch: "a"}, "2 are given"},
	} {
		if _, err := Actions("reload", []Action{{Touch: "good"}, tt.action}, plugin.Host{}); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever sees that a check was failed wants to read what the command has said.
func TestCommandSaysWhyItFailed(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"exit 0":                         "",
		"echo out; echo err >&2; exit 3": "exit code 3: err",
		"echo out; exit 3":               "exit code 3: out",
		"exit 3":                         "exit code 3: ",
		"printf '%0600d' 1; exit 3":      "exit code 3: " + strings.Repeat("0", 512),
		"printf '\\377a'; exit 3":        "exit code 3: \uFFFDa",
		"printf 'a%0600d' 1 | sed s/0/é/g >&2; exit 3": "exit code 3: a" + strings.Repeat("é", 255), // the limit is inside a character
	} {
		err := execer{}.Exec(t.Context(), []string{"/bin/sh", "-c", command})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
	if err := (execer{}).Exec(t.Context(), []string{"/none"}); err == nil {
		t.Error("a command that is not there has succeeded")
	}
}

// A check asks for the version that has just been put in place, whatever characters it has.
func TestChecksAreOfTheVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	for name, tt := range map[string]struct {
		content, version string
		change           func(*endpoint.Endpoint)
		ok               bool
	}{
		"content":                            {"version=v1.2", "v1.2", func(e *endpoint.Endpoint) { e.File.Content = "version={version}$" }, true},
		"a version is no regular expression": {"version=v1x2", "v1.2", func(e *endpoint.Endpoint) { e.File.Content = "version={version}$" }, false},
		"the result":                         {"v1", "v1", func(e *endpoint.Endpoint) { e.ExpectedResult = "{version}" }, true},
		"another result":                     {"v2", "v1", func(e *endpoint.Endpoint) { e.ExpectedResult = "{version}" }, false},
		"a value": {`{"v":"v1"}`, "v1", func(e *endpoint.Endpoint) {
			e.JSONPathConfig = &endpoint.JSONPath{JSONPath: "v", Value: "{version}"}
		}, true},
		"another value": {`{"v":"v2"}`, "v1", func(e *endpoint.Endpoint) {
			e.JSONPathConfig = &endpoint.JSONPath{JSONPath: "v", Value: "{version}"}
		}, false},
		"a number": {`{"v":1}`, "v1", func(e *endpoint.Endpoint) { e.JSONPathConfig = &endpoint.JSONPath{JSONPath: "v", Value: 1} }, true},
	} {
		if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		e := endpoint.Endpoint{File: &endpoint.File{Path: path}}
		tt.change(&e)
		verify := &Verify{Checks: []endpoint.Endpoint{e}}
		made, err := verify.Verification(plugin.Host{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time as well: the configuration itself has still the place of the version
			if err := made.Checks[0].Run(t.Context(), action.Release{Version: tt.version}); (err == nil) != tt.ok {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := made.Checks[0].Run(t.Context(), action.Release{Version: "another"}); (err == nil) != (name == "a number") {
			t.Errorf("%s, of another version: %v", name, err)
		}
	}
}

func TestVerificationIsAsConfigured(t *testing.T) {
	t.Parallel()
	if made, err := (*Verify)(nil).Verification(plugin.Host{}); err != nil || len(made.Checks) > 0 {
		t.Errorf("none: %+v, %v", made, err)
	}
	verify := &Verify{WithinSeconds: 1.5, ForSeconds: 2, IntervalSeconds: 0.5, Checks: []endpoint.Endpoint{{Name: "up", URL: "http://127.0.0.1/{version}", Timeout: 3}}}
	made, err := verify.Verification(plugin.Host{})
	if err != nil || made.Within != 1500*time.Millisecond || made.For != 2*time.Second || made.Interval != 500*time.Millisecond {
		t.Fatalf("%+v, %v", made, err)
	}
	verify.Checks = append(verify.Checks, endpoint.Endpoint{})
	if _, err := verify.Verification(plugin.Host{}); err == nil || !strings.Contains(err.Error(), "verify.checks[1]: want exactly one of url") {
		t.Errorf("a check of nothing: %v", err)
	}
	if check := made.Checks[0]; check.Name != "check up" || check.Timeout != 3*time.Second {
		t.Errorf("%+v", check)
	}
}

// The program tells by its URL which version it is to say.
func TestVersionIsPartOfTheURLOfACheck(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Query().Get("v") }))
	t.Cleanup(app.Close)
	c := check{endpoint: endpoint.Endpoint{URL: app.URL + "/?v={version}"}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Run(ctx, action.Release{Version: "a b&c"}); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "a b&c" {
		t.Errorf("asked for %q", got)
	}
}

// A check that refers to the version cannot distinguish two contents of one version.
func TestChecksThatCompareTheVersion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		check endpoint.Endpoint
		want  bool
	}{
		"result":         {endpoint.Endpoint{URL: "http://app/version", ExpectedResult: "{version}"}, true},
		"URL":            {endpoint.Endpoint{URL: "http://app/loaded/{version}"}, true},
		"file":           {endpoint.Endpoint{File: &endpoint.File{Path: "/f", Content: "^{version}$"}}, true},
		"value in JSON":  {endpoint.Endpoint{URL: "http://app", JSONPathConfig: &endpoint.JSONPath{JSONPath: "v", Value: "{version}"}}, true},
		"another value":  {endpoint.Endpoint{URL: "http://app", JSONPathConfig: &endpoint.JSONPath{JSONPath: "v", Value: 1}}, false},
		"another result": {endpoint.Endpoint{URL: "http://app", ExpectedResult: "ok", File: &endpoint.File{}}, false},
	} {
		v := &Verify{Checks: []endpoint.Endpoint{{URL: "http://app/healthy"}, tt.check}}
		if got := v.ComparesVersion(); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	if (*Verify)(nil).ComparesVersion() {
		t.Error("no verification compares the version")
	}
}
