package cli_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/cli"
	"github.com/refit-project/refit/hotupdate/inpod/httpapi"
	"github.com/refit-project/refit/internal/console"
)

// sidecar has accepted v1 and then v2. It answers the next request with err.
type sidecar struct {
	err  error
	got  hotupdate.Request
	back string
}

func (s *sidecar) Apply(_ context.Context, request hotupdate.Request) (hotupdate.Result, error) {
	s.got = request
	return hotupdate.Result{Changed: request.Version != "v2", Revision: hotupdate.Revision{ID: "r3", Version: request.Version, Files: []hotupdate.File{{Name: "a", Size: 5}}}}, s.err
}

func (s *sidecar) Rollback(_ context.Context, id string) (hotupdate.Result, error) {
	s.back = id
	return hotupdate.Result{Changed: true, Revision: hotupdate.Revision{ID: "r1", Version: "v1"}}, s.err
}

func (*sidecar) Revisions() ([]hotupdate.Revision, error) {
	return []hotupdate.Revision{{ID: "r2", Version: "v2"}, {ID: "r1", Version: "v1"}}, nil
}

// serve returns the configuration for a sidecar with the interface of hotupdate/inpod, and what is printed.
func serve(t *testing.T, s *sidecar) (cli.Config, *bytes.Buffer) {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handler := range httpapi.Routes(s) {
		mux.Handle(pattern, handler)
	}
	return to(t, mux)
}

func to(t *testing.T, handler http.Handler) (cli.Config, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: rewrite{address.Host}}
	var out bytes.Buffer
	return cli.Config{Client: client, Pod: "web-0", Output: console.NewOutput(&out, false), Timeout: 10 * time.Second}, &out
}

// rewrite sends requests to a server, whatever host their URL has.
type rewrite struct{ host string }

func (r rewrite) RoundTrip(request *http.Request) (*http.Response, error) {
	request.URL.Host = r.host
	return http.DefaultTransport.RoundTrip(request)
}

func TestFilesAreReadAndSent(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "site.conf")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := cli.ReadFiles([]string{path, "conf/other.conf=" + path})
	if err != nil {
		t.Fatal(err)
	}
	s := &sidecar{}
	config, out := serve(t, s)
	if err := cli.Update(t.Context(), config, cli.Change{Version: "v3", Files: files, Keep: true}); err != nil {
		t.Fatal(err)
	}
	if s.got.Version != "v3" || len(s.got.Sources) != 2 || s.got.Sources[0].Name != "site.conf" || s.got.Sources[1].Name != "conf/other.conf" || string(s.got.Sources[1].Data) != "hello" {
		t.Errorf("%+v", s.got)
	}
	if !strings.Contains(out.String(), "pod/web-0: version v3 is in use: 1 file, 5 bytes, revision r3") {
		t.Error(out.String())
	}
}

func TestFilesThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	large := filepath.Join(folder, "large")
	if err := os.WriteFile(large, make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for argument, want := range map[string]string{
		"=": "want FILE, or NAME=FILE", folder: "not a regular file", filepath.Join(folder, "away"): "no such file", large: "more than 5 MiB",
	} {
		if _, err := cli.ReadFiles([]string{argument}); !errors.Is(err, console.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", argument, err, want)
		}
	}
}

func TestWhatASidecarAnswersIsSaid(t *testing.T) {
	t.Parallel()
	update := func(version string, dry bool) func(context.Context, cli.Config) error {
		return func(ctx context.Context, c cli.Config) error {
			return cli.Update(ctx, c, cli.Change{Version: version, Files: []cli.File{{Name: "a", Data: []byte("x")}}, DryRun: dry})
		}
	}
	back := func(to string) func(context.Context, cli.Config) error {
		return func(ctx context.Context, c cli.Config) error { return cli.Rollback(ctx, c, to) }
	}
	for name, tc := range map[string]struct {
		do   func(context.Context, cli.Config) error
		err  error // of the sidecar
		kind error
		want string
	}{
		"nothing to change": {do: update("v2", false), want: "version v2 is in use already"},
		"a dry run":         {do: update("v3", true), want: "would be accepted; nothing has been changed"},
		"the list":          {do: cli.Revisions, want: "present"},
		"back":              {do: back("v1"), want: "back to version v1"},
		"back by ID":        {do: back("r1"), want: "back to version v1"},
		"to nowhere":        {do: back("v9"), kind: console.ErrRefused, want: "v9"},
		"not valid":         {do: update("v3", false), err: hotupdate.ErrInvalid, kind: console.ErrRefused, want: hotupdate.ErrInvalid.Error()},
		"a failed check": {
			do: update("v3", false), err: &hotupdate.Failure{Phase: "Verifying", Err: errors.New("nginx -t: exit code 1\x1b[31m"), RolledBack: true},
			kind: console.ErrFailed, want: "pod web-0: Verifying: nginx -t: exit code 1[31m (rolled back); the former files are in use again",
		},
		"stopping": {do: update("v3", false), err: httpapi.ErrStopping, kind: console.ErrFailed, want: "stopping"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, out := serve(t, &sidecar{err: tc.err})
			err := tc.do(t.Context(), config)
			said := out.String()
			if err != nil {
				said = err.Error()
			}
			if !errors.Is(err, tc.kind) || tc.kind == nil && err != nil || !strings.Contains(said, tc.want) {
				t.Errorf("%v, printed %q; want %v: %s", err, out, tc.kind, tc.want)
			}
		})
	}
}

func TestOtherAnswersSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code int
		text string
		kind error
		want string
	}{
		"no token":        {http.StatusUnauthorized, "bearer token", console.ErrRefused, "--token-secret names the Secret"},
		"no such plugin":  {http.StatusNotFound, "404 page not found", console.ErrRefused, "hot_update of its sidecar may be off"},
		"another program": {http.StatusOK, "<html>", console.ErrFailed, "is another program listening there?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, _ := to(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.text))
			}))
			if err := cli.Revisions(t.Context(), config); !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

func TestASidecarThatStaysBusyIsATimeout(t *testing.T) {
	t.Parallel()
	config, _ := to(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusConflict)
	}))
	config.Timeout = 100 * time.Millisecond
	if err := cli.Update(t.Context(), config, cli.Change{Version: "v3", Files: []cli.File{{Name: "a"}}}); !errors.Is(err, console.ErrTimeout) {
		t.Error(err)
	}
}

// An update of somebody else ends by itself.
func TestABusySidecarIsAskedAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	config, out := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"error":"another update is in progress"}`))
			return
		}
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Error("no token")
		}
		_, _ = w.Write([]byte(`{"version":"v3","changed":true}`))
	}))
	config.Token = "secret"
	err := cli.Update(t.Context(), config, cli.Change{Version: "v3", Files: []cli.File{{Name: "a"}}})
	if err != nil || asked != 2 || !strings.Contains(out.String(), "another update is in progress; trying again") {
		t.Errorf("%v after %d requests, printed %q", err, asked, out)
	}
}
