package hotupdate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
)

type files = map[string]string

func TestApplyFromAServer(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"index.html": "old", "other": "mine"}, nil)
	url := serve(t, text("new")) + "/v2/index.html?token=secret"
	res := b.apply(t, hotupdate.Request{Version: "v2", Sources: []hotupdate.Source{{URL: url, SHA256: strings.ToUpper(sum("new"))}}})
	b.check(t, files{"index.html": "new", "other": "mine"})
	b.checkTold(t, "v2")
	b.checkClean(t)
	if !res.Changed || res.Revision.Version != "v2" || res.Revision.Sources[0].SHA256 != sum("new") {
		t.Errorf("result %+v", res)
	}
	if got := res.Revision.Sources[0].URL; strings.Contains(got, "secret") || !strings.HasSuffix(got, "/v2/index.html") {
		t.Errorf("origin %s", got)
	}
	if s := b.Status(); s.Phase != hotupdate.Accepted || s.Version != "v2" || s.Error != "" {
		t.Errorf("status %+v", s)
	}
}

// Several files change together; files that are not in the request are removed, unless they are to be kept.
func TestApplySets(t *testing.T) {
	t.Parallel()
	first := files{"a": "1", "conf/b": "1", "conf/deep/c": "1"}
	tests := map[string]struct {
		change func(*hotupdate.Request)
		want   files
	}{
		"the set is replaced": {func(*hotupdate.Request) {}, files{"a": "2", "new/d": "2", "mine": "x"}},
		"the rest is kept": {
			func(r *hotupdate.Request) { r.Keep = true },
			files{"a": "2", "new/d": "2", "conf/b": "1", "conf/deep/c": "1", "mine": "x"},
		},
		"a dry run changes nothing": {
			func(r *hotupdate.Request) { r.DryRun = true }, files{"a": "1", "conf/b": "1", "conf/deep/c": "1", "mine": "x"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, files{"mine": "x"}, nil)
			b.apply(t, inline("v1", first))
			req := inline("v2", files{"a": "2", "new/d": "2"})
			tt.change(&req)
			b.apply(t, req)
			b.check(t, tt.want)
			b.checkClean(t)
		})
	}
}

// Each kind of failure reports its phase, keeps or restores the old files, and is never a success.
func TestFailuresLeaveTheOldFiles(t *testing.T) {
	t.Parallel()
	status := func(code int) func(*testing.T) hotupdate.Source {
		return func(t *testing.T) hotupdate.Source {
			return hotupdate.Source{Name: "a", URL: serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })}
		}
	}
	good := func(*testing.T) hotupdate.Source { return hotupdate.Source{Name: "a", Data: []byte("new")} }
	tests := map[string]struct {
		source     func(*testing.T) hotupdate.Source
		config     func(*hotupdate.Config)
		err        error
		phase      hotupdate.Phase
		rolledBack bool
		told       []string
	}{
		"404 page":      {source: status(404), err: hotupdate.ErrFetch, phase: hotupdate.Fetching},
		"500 page":      {source: status(500), err: hotupdate.ErrFetch, phase: hotupdate.Fetching},
		"empty success": {source: status(204), err: hotupdate.ErrFetch, phase: hotupdate.Fetching},
		"body cut off": {source: func(t *testing.T) hotupdate.Source {
			return hotupdate.Source{Name: "a", URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("half"))
			})}
		}, err: hotupdate.ErrFetch, phase: hotupdate.Fetching},
		"wrong digest": {source: func(*testing.T) hotupdate.Source {
			return hotupdate.Source{Name: "a", Data: []byte("new"), SHA256: sum("other")}
		}, err: hotupdate.ErrDigest, phase: hotupdate.Fetching},
		"metadata address": {source: func(*testing.T) hotupdate.Source {
			return hotupdate.Source{Name: "a", URL: "http://169.254.169.254/latest/meta-data"}
		}, err: hotupdate.ErrRefused, phase: hotupdate.Fetching},
		"rejected before": {source: good, config: func(c *hotupdate.Config) { c.Precheck = failing("bad syntax") },
			err: hotupdate.ErrPrecheck, phase: hotupdate.Checking},
		"reload fails": {source: good, config: func(c *hotupdate.Config) { c.Reload = append(c.Reload, failing("no such process")...) },
			err: hotupdate.ErrReload, phase: hotupdate.Reloading, rolledBack: true, told: []string{"v2", "v1"}},
		"not well afterwards": {source: good, config: func(c *hotupdate.Config) { c.Verify.Checks = failing("status 500") },
			err: hotupdate.ErrVerify, phase: hotupdate.Verifying, rolledBack: true, told: []string{"v2", "v1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, func(c *hotupdate.Config) { c.Fetch.Attempts = 1 })
			b.apply(t, inline("v1", files{"a": "old", "b": "old"}))
			b.Close()
			b.told = nil
			b.open(t, func(c *hotupdate.Config) {
				c.Fetch.Attempts = 1
				if tt.config != nil {
					tt.config(c)
				}
			})
			res, err := b.Apply(t.Context(), hotupdate.Request{Version: "v2", Sources: []hotupdate.Source{tt.source(t)}})
			var failure *hotupdate.Failure
			if !errors.Is(err, tt.err) || !errors.As(err, &failure) {
				t.Fatalf("result %+v, err = %v, want %v", res, err, tt.err)
			}
			if failure.Phase != tt.phase || failure.RolledBack != tt.rolledBack {
				t.Errorf("failure %+v", failure)
			}
			b.check(t, files{"a": "old", "b": "old"})
			b.checkTold(t, tt.told...)
			b.checkClean(t)
			want := hotupdate.Failed
			if tt.rolledBack {
				want = hotupdate.RolledBack
			}
			if s := b.Status(); s.Phase != want || s.Version != "v2" || s.Error != err.Error() {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// A first update can be rolled back to the files that existed before it.
func TestFirstUpdateRollsBackToWhatWasFound(t *testing.T) {
	t.Parallel()
	before := files{"index.html": "shipped with the image", "sub/x": "too", "mine": "x"}
	b := newBench(t, before, func(c *hotupdate.Config) { c.Verify.Checks = failing("status 500") })
	req := inline("v1", files{"index.html": "new", "sub/x": "new", "added": "new"})
	if _, err := b.Apply(t.Context(), req); !errors.Is(err, hotupdate.ErrVerify) {
		t.Fatalf("err = %v", err)
	}
	b.check(t, before)
	all := b.Revisions()
	if all[0].Version != hotupdate.InitialVersion {
		t.Errorf("revisions %+v", all)
	}
}

// The client of an update may disconnect: the update continues.
func TestCancelDuringVerificationRollsBack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, files{"a": "old"}, func(c *hotupdate.Config) {
		c.Verify = action.Verification{For: time.Hour, Checks: []action.Action{
			{Name: "well", Step: step(func(context.Context, action.Release) error { cancel(); return nil })},
		}}
	})
	_, err := b.Apply(ctx, inline("v1", files{"a": "new"}))
	var failure *hotupdate.Failure
	if !errors.As(err, &failure) || !failure.RolledBack || failure.RollbackErr != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v", err)
	}
	b.check(t, files{"a": "old"})
}

// The status distinguishes an update from a request that changed nothing.
func TestStatusSaysWhetherAnythingHasChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	for _, want := range []hotupdate.Phase{hotupdate.Accepted, hotupdate.Unchanged} {
		b.apply(t, inline("v1", files{"a": "1"}))
		if got := b.Status(); got.Phase != want || got.Version != "v1" {
			t.Errorf("status %+v, want %s", got, want)
		}
	}
}

// Only one update runs at a time, and others can wait for it; the status can be read meanwhile.
func TestOneUpdateAtATime(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	b := newBench(t, nil, func(c *hotupdate.Config) {
		c.Precheck = []action.Action{{Name: "wait", Timeout: time.Minute, Step: step(func(context.Context, action.Release) error {
			close(entered)
			<-release
			return nil
		})}}
	})
	done := make(chan error)
	go func() {
		_, err := b.Apply(t.Context(), inline("v1", files{"a": "1"}))
		done <- err
	}()
	<-entered
	if _, err := b.TryAcquire(); !errors.Is(err, hotupdate.ErrBusy) {
		t.Errorf("meanwhile: %v", err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Acquire(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	next := make(chan error)
	go func() {
		lock, err := b.Acquire(t.Context())
		if err == nil {
			err = lock.Reload(t.Context())
			lock.Release()
		}
		next <- err
	}()
	if s := b.Status(); s.Phase != hotupdate.Checking || s.Version != "v1" {
		t.Errorf("status %+v", s)
	}
	if all := b.Revisions(); len(all) != 1 {
		t.Errorf("revisions meanwhile: %v", all)
	}
	close(release)
	if err := errors.Join(<-done, <-next); err != nil {
		t.Error(err)
	}
	b.check(t, files{"a": "1"})
	b.checkTold(t, "v1", "v1")
}

// Idempotent by version and digest: no fetch with digests, an If-None-Match without.
func TestApplyAgain(t *testing.T) {
	t.Parallel()
	var asked []string
	content := "new"
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("If-None-Match"))
		w.Header().Set("ETag", `"`+sum(content)[:8]+`"`)
		if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, content)
	})
	b := newBench(t, nil, nil)
	etag := `"` + sum("new")[:8] + `"`
	withDigest := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{URL: url, Name: "a", SHA256: sum("new")}}}
	without := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{{URL: url, Name: "a"}}}
	steps := []struct {
		name    string
		request hotupdate.Request
		content string
		changed bool
		asked   []string
	}{
		{"first", withDigest, "new", true, []string{""}},
		{"same digest", withDigest, "new", false, []string{""}},
		{"no digest", without, "new", false, []string{"", etag}},
		{"no digest, other content", without, "newer", true, []string{"", etag, etag}},
	}
	for _, s := range steps {
		content = s.content
		if res := b.apply(t, s.request); res.Changed != s.changed {
			t.Errorf("%s: changed %v", s.name, res.Changed)
		}
		if diff := cmp.Diff(s.asked, asked); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", s.name, diff)
		}
	}
	b.checkTold(t, "v1", "v1")
	if res := b.apply(t, inline("v1", files{"a": "newer"})); res.Changed {
		t.Error("the same content from elsewhere is a change")
	}
}
