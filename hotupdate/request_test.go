package hotupdate_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/hotupdate/fetch"
)

func TestRequestNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source hotupdate.Source
		want   string // name, empty: refused
	}{
		"from the URL":             {hotupdate.Source{URL: "https://h/v2/index.html?x=1"}, "index.html"},
		"from the URL, encoded":    {hotupdate.Source{URL: "https://h/a%20b"}, "a b"},
		"URL without a path":       {hotupdate.Source{URL: "https://h"}, ""},
		"URL of a folder":          {hotupdate.Source{URL: "https://h/v2/"}, ""},
		"URL of the parent":        {hotupdate.Source{URL: "https://h/.."}, ""},
		"URL, encoded parent":      {hotupdate.Source{URL: "https://h/a%2f..%2f..%2fevil"}, "evil"},
		"given":                    {hotupdate.Source{URL: "https://h/x", Name: "conf/app.json"}, "conf/app.json"},
		"given, to be cleaned":     {hotupdate.Source{Name: "conf//./app.json"}, "conf/app.json"},
		"absolute":                 {hotupdate.Source{Name: "/etc/passwd"}, ""},
		"parent":                   {hotupdate.Source{Name: "../x"}, ""},
		"parent in the middle":     {hotupdate.Source{Name: "a/../../x"}, ""},
		"our folder":               {hotupdate.Source{Name: "..refit/state.json"}, ""},
		"our link":                 {hotupdate.Source{Name: "..data"}, ""},
		"our link, roundabout":     {hotupdate.Source{Name: "a/../..data"}, ""},
		"newline":                  {hotupdate.Source{Name: "a\nb"}, ""},
		"NUL":                      {hotupdate.Source{Name: "a\x00b"}, ""},
		"too long":                 {hotupdate.Source{Name: strings.Repeat("x/", 600)}, ""},
		"nothing":                  {hotupdate.Source{}, ""},
		"digest not hexadecimal":   {hotupdate.Source{Name: "a", SHA256: strings.Repeat("z", 64)}, ""},
		"digest too short":         {hotupdate.Source{Name: "a", SHA256: "abcd"}, ""},
		"scheme":                   {hotupdate.Source{URL: "ftp://h/a"}, ""},
		"no host":                  {hotupdate.Source{URL: "http:///a"}, ""},
		"unknown format":           {hotupdate.Source{Name: "a", Format: "rar"}, ""},
		"archive below the parent": {hotupdate.Source{Name: "../x", Format: hotupdate.Zip}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{tt.source}}.Validate()
			if tt.want == "" {
				if !errors.Is(err, hotupdate.ErrInvalid) {
					t.Errorf("err = %v, want ErrInvalid", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.source.URL != "" {
				return // its name is seen below and in the tests that fetch
			}
			b := newBench(t, nil, nil)
			b.apply(t, hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{tt.source}})
			b.check(t, files{tt.want: ""})
		})
	}
}

func TestRequestReportsAllFaults(t *testing.T) {
	t.Parallel()
	err := hotupdate.Request{Version: "a\nb", Sources: []hotupdate.Source{
		{Name: "../x"}, {Name: "a"}, {Name: "b/../a"}, {URL: "ftp://u:secret@h/x"},
	}}.Validate()
	if !errors.Is(err, hotupdate.ErrInvalid) {
		t.Fatalf("err = %v", err)
	}
	for _, want := range []string{"version", "source 0", "source 2: a is given twice", "source 3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error shows the password: %v", err)
	}
	if err := (hotupdate.Request{}).Validate(); err == nil || !strings.Contains(err.Error(), "no source") {
		t.Errorf("empty request: %v", err)
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := hotupdate.Open(t.Context(), hotupdate.Config{
		Dir: "relative", Keep: 1, Fetch: fetch.Config{Timeout: -1}, Reload: []action.Action{{Name: "x"}}, RollbackTimeout: -time.Second,
	})
	for _, want := range []string{"absolute", "keep 1", "negative", `action "x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if _, err := hotupdate.Open(t.Context(), hotupdate.Config{Dir: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("a missing folder was opened")
	}
}

// Names in a request stay in the folder, in any spelling.
func FuzzRequestNames(f *testing.F) {
	for _, s := range []string{"a", "../a", "a/../b", "..data", "/x", `a\b`, "a/b/../../../c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		req := hotupdate.Request{Version: "v", Sources: []hotupdate.Source{{Name: name}}}
		clean := filepath.Clean(name)
		if req.Validate() == nil && (!filepath.IsLocal(clean) || strings.HasPrefix(clean, "..") || clean == ".") {
			t.Errorf("%q is admitted", name)
		}
	})
}
