package hotupdate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
)

// Verification: the checks have to pass within a time, and then for a time.
func TestVerification(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		within, forTime time.Duration
		answers         string // of each second, + well, - not; the last one repeats
		want            string // part of the error, empty: accepted
		took            time.Duration
	}{
		"well at once":               {0, 0, "+", "", 0},
		"not well, no patience":      {0, 0, "-", "ill", 0},
		"well in time":               {5 * time.Second, 0, "---+", "", 3 * time.Second},
		"not well in time":           {3 * time.Second, 0, "-", "ill", 3 * time.Second},
		"well for long enough":       {0, 3 * time.Second, "++++", "", 3 * time.Second},
		"falls ill":                  {0, 5 * time.Second, "+++-+", "checks passed for 3s, then failed: judge: ill", 3 * time.Second},
		"late, then for long enough": {5 * time.Second, 2 * time.Second, "--+++", "", 4 * time.Second},
		"late, then falls ill":       {9 * time.Second, 9 * time.Second, "--+-", "checks passed for 1s", 3 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				began, n := time.Now(), 0
				check := step(func(context.Context, action.Release) error {
					answer := tt.answers[min(n, len(tt.answers)-1)]
					if n++; answer == '-' {
						return errors.New("ill")
					}
					return nil
				})
				u, err := hotupdate.Open(t.Context(), hotupdate.Config{Dir: dir, Verify: action.Verification{
					Checks: []action.Action{{Name: "judge", Step: check}}, Within: tt.within, For: tt.forTime,
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				_, err = u.Apply(t.Context(), inline("v1", files{"a": "1"}))
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("err = %v, want %q", err, tt.want)
				}
				if got := time.Since(began); got != tt.took {
					t.Errorf("took %s, want %s", got, tt.took)
				}
			})
		})
	}
}

// A chain runs in order, each action with its own timeout, and ends at the first failure.
func TestChain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		link := func(name string, failures int) action.Action {
			return action.Action{Name: name, Attempts: 3, Pause: time.Second, Timeout: 5 * time.Second,
				Step: step(func(ctx context.Context, _ action.Release) error {
					ran = append(ran, name)
					if failures--; failures >= 0 {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				})}
		}
		began := time.Now()
		u, err := hotupdate.Open(t.Context(), hotupdate.Config{Dir: dir, Reload: []action.Action{link("one", 0), link("two", 2), link("three", 3), link("four", 0)}})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		_, err = u.Apply(t.Context(), inline("v1", files{"a": "1"}))
		if !errors.Is(err, hotupdate.ErrReload) || !strings.Contains(err.Error(), "three: context deadline exceeded") {
			t.Errorf("err = %v", err)
		}
		// The rollback finds all of them in order.
		want := []string{"one", "two", "two", "two", "three", "three", "three", "one", "two", "three", "four"}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Errorf("ran (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took != (5*5+2+2)*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestRollbackThatFailsToo(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"a": "old"}, func(c *hotupdate.Config) { c.Reload = failing("no such process") })
	_, err := b.Apply(t.Context(), inline("v1", files{"a": "new"}))
	var failure *hotupdate.Failure
	if !errors.As(err, &failure) || !failure.RolledBack || !errors.Is(failure.RollbackErr, hotupdate.ErrReload) {
		t.Errorf("err = %v", err)
	}
	b.check(t, files{"a": "old"})
}

type port struct {
	err error
	got []string
}

func (p *port) Signal(context.Context) error { p.got = append(p.got, "signal"); return p.err }

func (p *port) Exec(_ context.Context, command []string) error {
	p.got = append(p.got, command...)
	return p.err
}

func TestSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	touched := filepath.Join(dir, "reload")
	if err := errors.Join(os.WriteFile(touched, nil, 0o600), os.Chtimes(touched, old, old)); err != nil {
		t.Fatal(err)
	}
	var asked string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = strings.Join([]string{r.Method, r.Host, r.URL.Path, r.Header.Get("X-Token"), string(body)}, " ")
		switch r.URL.Path {
		case "/reload":
		case "/elsewhere":
			http.Redirect(w, r, "/reload", http.StatusFound)
		case "/long":
			http.Error(w, "a"+strings.Repeat("é", 1000), http.StatusUnprocessableEntity)
		default:
			http.Error(w, "line 3: unknown directive", http.StatusUnprocessableEntity)
		}
	})
	release := action.Release{Version: "v2", Dir: dir, Path: dir + "/candidate"}
	p := &port{}
	tests := map[string]struct {
		step action.Step
		want string // part of the error
	}{
		"signal":                     {action.Signal{Signaler: p}, ""},
		"signal fails":               {action.Signal{Signaler: &port{err: errors.New("no such process")}}, "no such process"},
		"command":                    {action.Command{Execer: p, Command: []string{"nginx", "-t", "-c", "{path}/nginx.conf", "{dir}", "{version}"}}, ""},
		"command fails":              {action.Command{Execer: &port{err: errors.New("exit code 1")}, Command: []string{"x"}}, "exit code 1"},
		"touch":                      {action.Touch{Name: "reload"}, ""},
		"touch what is not there":    {action.Touch{Name: "stamp"}, ""},
		"touch outside":              {action.Touch{Name: "../x"}, "escapes"},
		"call":                       {action.Call{URL: url + "/reload", Body: "now", Header: http.Header{"x-token": {"t"}, "Host": {"app"}}}, ""},
		"call, other status wanted":  {action.Call{URL: url + "/reload", ExpectedStatus: 204}, "status 200"},
		"call, that status":          {action.Call{URL: url + "/bad", ExpectedStatus: 422}, ""},
		"call is answered badly":     {action.Call{URL: url + "/bad"}, "status 422: line 3: unknown directive"},
		"call is answered at length": {action.Call{URL: url + "/long"}, "status 422: a" + strings.Repeat("é", 255)}, // the limit is inside a character
		"call is sent elsewhere":     {action.Call{URL: url + "/elsewhere"}, "status 302"},
		"call reaches nobody":        {action.Call{URL: "http://127.0.0.1:1/?secret"}, "refused"},
		"call makes no sense":        {action.Call{URL: ":", Method: "A B"}, ""},
	}
	for name, tt := range tests {
		err := tt.step.Run(t.Context(), release)
		if name == "call makes no sense" {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			continue
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: err = %v, want %q", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "\uFFFD") {
			t.Errorf("%s: half a character: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the URL: %v", name, err)
		}
		if name == "call" && asked != "POST app /reload t now" {
			t.Errorf("server saw %q", asked)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "stamp")); err != nil {
		t.Errorf("touched what was not there: %v", err)
	}
	if info, err := os.Stat(touched); err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("touched: %v, %v", info.ModTime(), err)
	}
	got := strings.Join(p.got, " ")
	if want := "nginx -t -c " + dir + "/candidate/nginx.conf " + dir + " v2"; !strings.Contains(got, want) || !strings.Contains(got, "signal") {
		t.Errorf("ports saw %q", got)
	}
}

// A version with shell metacharacters is not passed to a command: otherwise a user who may choose a version could run
// commands.
func TestVersionsThatAShellWouldInterpretAreRefusedInCommands(t *testing.T) {
	t.Parallel()
	for version, allowed := range map[string]bool{
		"v1.2.3": true, "sha256-0a": true, "2026-01-01T10:00": true, "user@host": true,
		"v1;reboot": false, "$(reboot)": false, "`id`": false, "v1 v2": false, "a'b": false, `a"b`: false, "-rf": false,
		"v1\nid": false, "*": false, "v1&": false, "~": false, "": false,
	} {
		p := &port{}
		step := action.Command{Execer: p, Command: []string{"sh", "-c", "echo {version}"}}
		err := step.Run(t.Context(), action.Release{Version: version, Path: "/p", Dir: "/d"})
		if errors.Is(err, action.ErrVersion) == allowed {
			t.Errorf("%q: %v", version, err)
		}
		plain := action.Command{Execer: p, Command: []string{"reload", "{path}"}}
		if err := plain.Run(t.Context(), action.Release{Version: version, Path: "/p"}); errors.Is(err, action.ErrVersion) {
			t.Errorf("%q in a command without it: %v", version, err)
		}
	}
}
