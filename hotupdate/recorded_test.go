package hotupdate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
)

// requestedOf returns how the current revision can be fetched into another folder.
func (b *bench) requestedOf(t *testing.T) []string {
	t.Helper()
	all := b.Revisions()
	var names []string
	for _, o := range all[0].Requested.Sources {
		names = append(names, string(o.Format)+" "+o.Name)
	}
	return names
}

// Only the files of an archive that the revision has count, also when it is built from its sources in another folder.
func TestRevisionOfTwoArchivesFitsIntoTheLimitsAgain(t *testing.T) {
	t.Parallel()
	limits := func(c *hotupdate.Config) { c.Limits.MaxFiles = 10 }
	b := newBench(t, nil, limits)
	var one, two []tarEntry
	for n := range 7 {
		one, two = append(one, tarFile(fmt.Sprintf("a%d", n), "1")), append(two, tarFile(fmt.Sprintf("a%d", n+1), "2"))
	}
	first, second := archived(hotupdate.TarGz, tarGz(t, one...), ""), archived(hotupdate.TarGz, tarGz(t, two...), "")
	second.Version, second.Keep = "v2", true
	b.apply(t, first)
	b.apply(t, second)
	next := newBench(t, nil, limits)
	next.apply(t, hotupdate.Request{Version: "v2", Layered: true, Keep: true, KeepUnrequested: true, Sources: append(first.Sources, second.Sources...)})
	next.check(t, see(t, b.dir))
	third := archived(hotupdate.TarGz, tarGz(t, tarFile("b0", "3"), tarFile("b1", "3"), tarFile("b2", "3")), "")
	third.Version, third.Keep = "v3", true
	if _, err := next.Apply(t.Context(), third); !errors.Is(err, hotupdate.ErrTooLarge) {
		t.Errorf("three more: %v", err)
	}
}

// Each revision knows all the sources that it was made from, also after a restart, except sources whose files are gone and
// triggers.
func TestRevisionsKnowWhereTheirFilesAreFrom(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"a": "from the image"}, nil)
	keep := func(r hotupdate.Request) hotupdate.Request { r.Keep = true; return r }
	trigger := func(r hotupdate.Request) hotupdate.Request {
		r.Keep, r.Trigger, r.TriggerDigest = true, "configmap", r.Version
		return r
	}
	archive := keep(archived(hotupdate.TarGz, tarGz(t, tarFile("b", "archived"), tarFile("c", "archived")), ""))
	another := keep(archived(hotupdate.TarGz, tarGz(t, tarFile("b", "another")), ""))
	all := keep(archived(hotupdate.TarGz, tarGz(t, tarFile("b", "all"), tarFile("c", "all")), ""))
	nothing := keep(archived(hotupdate.TarGz, tarGz(t), "nothing"))
	nothing.Version = "nothing"
	for _, tt := range []struct {
		name    string
		request hotupdate.Request
		want    []string
	}{
		{"first", inline("v1", files{"a": "1"}), []string{" a"}},
		{"a file more", keep(inline("v2", files{"b": "2"})), []string{" a", " b"}},
		{"another content", keep(inline("v3", files{"a": "3"})), []string{" b", " a"}},
		{"archive with one of them", archive, []string{" a", "tar.gz "}},
		{"trigger beside them", trigger(inline("t1", files{"d": "1"})), []string{" a", "tar.gz "}},
		{"trigger that replaces one", trigger(inline("t2", files{"a": "t"})), []string{"tar.gz "}},
		{"after the triggers", keep(inline("v5", files{"e": "5"})), []string{"tar.gz ", " e"}},
		{"the archive again", archive, []string{" e", "tar.gz "}},
		{"another archive, without one of its files", another, []string{" e", "tar.gz ", "tar.gz "}},
		{"an archive with all of them", all, []string{" e", "tar.gz "}},
		{"an archive without files", nothing, []string{" e", "tar.gz ", "tar.gz nothing"}},
		{"another file", keep(inline("v7", files{"e": "7"})), []string{"tar.gz ", " e"}},
		{"these alone", inline("v6", files{"a": "6"}), []string{" a"}},
	} {
		b.apply(t, tt.request)
		b.Close()
		b.open(t, nil)
		if diff := cmp.Diff(tt.want, b.requestedOf(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if _, err := b.Rollback(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tar.gz ", " e"}, b.requestedOf(t)); diff != "" {
		t.Errorf("after going back (-want +got):\n%s", diff)
	}
}

// Files of a later source replace files of an earlier one, also if one is a folder.
func TestLayeredSources(t *testing.T) {
	t.Parallel()
	request := archived(hotupdate.TarGz, tarGz(t, tarFile("a", "archived"), tarFile("b", "archived"), tarFile("c/d", "archived"), tarFile("e", "archived")), "")
	request.Sources = append(request.Sources, inline("", files{"a": "1"}).Sources[0], inline("", files{"b/f": "1"}).Sources[0],
		inline("", files{"c": "1"}).Sources[0])
	b := newBench(t, nil, nil)
	if _, err := b.Apply(t.Context(), request); !errors.Is(err, hotupdate.ErrInvalid) {
		t.Errorf("two sources of one name: %v", err)
	}
	request.Layered = true
	b.apply(t, request)
	b.check(t, files{"a": "1", "b/f": "1", "c": "1", "e": "archived"})
	if diff := cmp.Diff([]string{"tar.gz ", " a", " b/f", " c"}, b.requestedOf(t)); diff != "" {
		t.Errorf("order of the sources (-want +got):\n%s", diff)
	}
}

// A revision that has to be recorded is remembered after restarts, failed updates and updates by triggers, which are not
// recorded.
func TestThatARevisionIsNotRecordedOutlastsARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	check := func(when string, since time.Time, want bool) time.Time {
		t.Helper()
		at := b.Unrecorded()
		b.Close()
		b.open(t, nil)
		if !b.Unrecorded().Equal(at) {
			t.Errorf("%s: %v, and after a restart %v", when, at, b.Unrecorded())
		}
		if at.IsZero() == want || want && at.Before(since) {
			t.Errorf("%s: unrecorded since %v", when, at)
		}
		return at
	}
	began := time.Now()
	record := func(version, content string) hotupdate.Request {
		r := inline(version, files{"a": content})
		r.Record = true
		return r
	}
	b.apply(t, inline("v0", files{"a": "0"}))
	check("restored", began, false)
	b.apply(t, record("v1", "1"))
	first := check("accepted", began, true)
	b.apply(t, record("v2", "2"))
	second := check("accepted again", first, true)
	if err := b.Recorded(first); err != nil {
		t.Fatal(err)
	}
	check("the one before is recorded", second, true)
	trigger := inline("t", files{"b": "1"})
	trigger.Keep, trigger.Trigger = true, "configmap"
	b.apply(t, trigger)
	bad := record("v3", "3")
	bad.Sources[0].SHA256 = sum("another")
	if _, err := b.Apply(t.Context(), bad); err == nil {
		t.Error("accepted")
	}
	if at := check("trigger, and an update that failed", second, true); !at.Equal(second) {
		t.Errorf("unrecorded since %v, want %v", at, second)
	}
	if err := b.Recorded(second); err != nil {
		t.Fatal(err)
	}
	check("recorded", began, false)
	if _, err := b.Rollback(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	check("gone back", second, true)
}

// A program of another user may read the volume.
func TestManifestsHoldNoCredentials(t *testing.T) {
	t.Parallel()
	url := serve(t, text("new"))
	for address, stored := range map[string]struct{ always, withQueries bool }{
		"http://H/a":                   {true, true},
		"http://H/a?Signature=s3cret":  {false, true},
		"http://s3cret@H/a":            {false, false},
		"http://user:s3cret@H/a?x=1":   {false, false},
		"http://H/a#a-part-of-no-file": {true, true},
	} {
		for queries, want := range map[bool]bool{false: stored.always, true: stored.withQueries} {
			b := newBench(t, nil, func(c *hotupdate.Config) { c.StoreQueries = queries })
			res := b.apply(t, hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{
				{URL: strings.Replace(address, "H", strings.TrimPrefix(url, "http://"), 1), Name: "a"},
			}})
			if got := !res.Revision.Requested.Sources[0].Stripped; got != want {
				t.Errorf("%s, queries stored: %t: whole: %t", address, queries, got)
			}
			manifest, err := os.ReadFile(filepath.Join(b.dir, "..refit/revisions", res.Revision.ID, "manifest.json"))
			if err != nil || !want && strings.Contains(string(manifest), "s3cret") {
				t.Errorf("%s, queries stored: %t: %s, %v", address, queries, manifest, err)
			}
		}
	}
}
