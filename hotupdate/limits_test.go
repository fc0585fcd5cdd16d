package hotupdate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/payload"
)

func TestFiveRevisionsStayUnlessMoreAreAskedFor(t *testing.T) {
	t.Parallel()
	for keep, want := range map[int]int{0: 5, 2: 2, 7: 7} {
		b := newBench(t, nil, func(c *hotupdate.Config) { c.Keep = keep })
		for n := range 8 {
			b.apply(t, inline(fmt.Sprint("v", n), files{"a": fmt.Sprint(n)}))
		}
		if got := len(b.Revisions()); got != want {
			t.Errorf("keep %d: %d revisions, want %d", keep, got, want)
		}
	}
}

func TestConfigRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	done := step(func(context.Context, action.Release) error { return nil })
	for name, change := range map[string]func(*hotupdate.Config){
		"one revision":                   func(c *hotupdate.Config) { c.Keep = 1 },
		"fewer than none":                func(c *hotupdate.Config) { c.Keep = -1 },
		"attempts":                       func(c *hotupdate.Config) { c.Fetch.Attempts = -1 },
		"bytes of a source":              func(c *hotupdate.Config) { c.Fetch.MaxBytes = -1 },
		"files":                          func(c *hotupdate.Config) { c.Limits.MaxFiles = -1 },
		"bytes unpacked":                 func(c *hotupdate.Config) { c.Limits.MaxUnpacked = -1 },
		"bytes of all revisions":         func(c *hotupdate.Config) { c.MaxTotal = -1 },
		"time of a roll back":            func(c *hotupdate.Config) { c.RollbackTimeout = -1 },
		"time until checks pass":         func(c *hotupdate.Config) { c.Verify.Within = -1 },
		"time for which checks pass":     func(c *hotupdate.Config) { c.Verify.For = -1 },
		"time between checks":            func(c *hotupdate.Config) { c.Verify.Interval = -1 },
		"a pre-check without a name":     func(c *hotupdate.Config) { c.Precheck = []action.Action{{Step: done}} },
		"a reload without a step":        func(c *hotupdate.Config) { c.Reload = []action.Action{{Name: "x"}} },
		"a check of negative time":       func(c *hotupdate.Config) { c.Verify.Checks = []action.Action{{Name: "x", Step: done, Timeout: -1}} },
		"a pause of negative time":       func(c *hotupdate.Config) { c.Reload = []action.Action{{Name: "x", Step: done, Pause: -1}} },
		"nothing: two revisions, a step": nil,
	} {
		config := hotupdate.Config{Dir: t.TempDir(), Keep: 2, Reload: []action.Action{{Name: "x", Step: done}}}
		if change != nil {
			change(&config)
		}
		if err := config.Validate(); (err == nil) != (change == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program that hangs holds up neither the update nor the way back for ever.
func TestStepsThatHangAreEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		timeout, limit time.Duration
		want           time.Duration // there and back
	}{
		"by default":                 {0, 0, 20 * time.Second},
		"as configured":              {3 * time.Second, 0, 6 * time.Second},
		"the way back":               {time.Minute, 0, 90 * time.Second},
		"the way back, as it is set": {time.Minute, 5 * time.Second, 65 * time.Second},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			hangs := action.Action{Name: "hangs", Timeout: tt.timeout, Step: step(func(ctx context.Context, _ action.Release) error {
				<-ctx.Done()
				return ctx.Err()
			})}
			u, err := hotupdate.Open(t.Context(), hotupdate.Config{Dir: dir, Reload: []action.Action{hangs}, RollbackTimeout: tt.limit})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			began := time.Now()
			_, err = u.Apply(t.Context(), inline("v1", files{"a": "1"}))
			if took := time.Since(began); !errors.Is(err, hotupdate.ErrReload) || took != tt.want {
				t.Errorf("%s: %v after %s, want %s", name, err, took, tt.want)
			}
		})
	}
}

func TestAStepIsTriedAsOftenAsItMaySucceed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		attempts int
		err      error
		want     int
	}{
		"once by default":                 {0, errors.New("no such process"), 1},
		"as often as asked for":           {3, errors.New("no such process"), 3},
		"once if it is never possible":    {3, fmt.Errorf("signal: %w", action.ErrImpossible), 1},
		"once if it succeeds":             {3, nil, 1},
		"once if whoever asked has ended": {3, context.Canceled, 1},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		tried := 0
		a := action.Action{Name: "signal", Attempts: tt.attempts, Step: step(func(context.Context, action.Release) error {
			tried++
			if errors.Is(tt.err, context.Canceled) {
				cancel()
			}
			return tt.err
		})}
		if err := a.Run(ctx, action.Release{}); !errors.Is(err, tt.err) || tried != tt.want {
			t.Errorf("%s: %v, tried %d times, want %d", name, err, tried, tt.want)
		}
		cancel()
	}
}

// The server has the same ETag for everything, as one that knows the time of its start alone.
func TestWhatMayBeSomethingElseIsFetchedAgain(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"always"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, r.URL.Path)
	})
	for name, tt := range map[string]struct {
		change func(*hotupdate.Request)
		want   files
	}{
		"the same":        {func(*hotupdate.Request) {}, nil},
		"another address": {func(r *hotupdate.Request) { r.Sources[0].URL = url + "/b" }, files{"a": "/b"}},
		"another name":    {func(r *hotupdate.Request) { r.Sources[0].Name = "b" }, files{"b": "/a"}},
		"another mode":    {func(r *hotupdate.Request) { r.Sources[0].Mode = 0o600 }, files{"a": "/a"}},
		"another version": {func(r *hotupdate.Request) { r.Version = "v2" }, files{"a": "/a"}},
		"one file more":   {func(r *hotupdate.Request) { r.Sources = append(r.Sources, inline("", files{"b": "1"}).Sources...) }, files{"a": "/a", "b": "1"}},
	} {
		b := newBench(t, nil, nil)
		request := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{URL: url + "/a", Name: "a"}}}
		b.apply(t, request)
		tt.change(&request)
		if res := b.apply(t, request); res.Changed != (tt.want != nil) {
			t.Errorf("%s: changed %t", name, res.Changed)
		}
		if tt.want != nil {
			b.check(t, tt.want)
		}
	}
}

// It only asks: the revision in force is as final as it was.
func TestADryRunOfWhatIsInForceRecordsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	request := inline("v1", files{"a": "1"})
	request.Provisional = true
	b.apply(t, request)
	for _, dry := range []bool{true, false} {
		asked := inline("v1", files{"a": "1"})
		asked.DryRun = dry
		if res := b.apply(t, asked); res.Changed || b.Provisional() != dry {
			t.Errorf("dry run %t: changed %t, provisional %t", dry, res.Changed, b.Provisional())
		}
	}
}

// Files of a limit's size are as good as any.
func TestNamesAtTheLimit(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x/", 511) + "xx"
	for name, valid := range map[string]bool{longest: true, longest + "x": false} {
		if err := inline("v1", files{name: "1"}).Validate(); (err == nil) != valid {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
	data := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{Name: "a", URL: "http://h/a", Data: []byte("x")}}}
	if err := data.Validate(); err == nil || !strings.Contains(err.Error(), "exactly one of URL and data") {
		t.Errorf("a URL, and a content at hand: %v", err)
	}
}

// Large files share their space between revisions; small ones do not, since a program may write to them.
func TestLargeFilesThatAreKeptTakeNoSpaceAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, inline("v1", files{"large": strings.Repeat("x", 1<<20+1), "small": strings.Repeat("x", 1<<20)}))
	inode := func(name string) os.FileInfo {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	large, small := inode("large"), inode("small")
	next := inline("v2", files{"other": "1"})
	next.Keep = true
	b.apply(t, next)
	if !os.SameFile(large, inode("large")) || os.SameFile(small, inode("small")) {
		t.Error("the large file was copied, or the small one was not")
	}
}

// As docs/sidecar.md has them.
func TestLimitsThatAreNotConfigured(t *testing.T) {
	t.Parallel()
	if got, want := (payload.Limits{}).WithDefaults(), (payload.Limits{MaxFiles: 10_000, MaxUnpacked: 1 << 30}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (fetch.Config{}).WithDefaults(); got.Timeout != 5*time.Minute || got.Attempts != 3 || got.MaxBytes != 256<<20 {
		t.Errorf("%+v", got)
	}
	set := fetch.Config{Timeout: time.Second, Attempts: 1, MaxBytes: 2}.WithDefaults()
	if limits := (payload.Limits{MaxFiles: 3, MaxUnpacked: 4}).WithDefaults(); limits != (payload.Limits{MaxFiles: 3, MaxUnpacked: 4}) || set.Timeout != time.Second || set.Attempts != 1 || set.MaxBytes != 2 {
		t.Errorf("%+v, %+v", limits, set)
	}
}
