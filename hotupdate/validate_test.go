package hotupdate_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

func TestRequestsAtTheLimits(t *testing.T) {
	t.Parallel()
	source := func(change func(*hotupdate.Source)) hotupdate.Request {
		s := hotupdate.Source{Name: "a"}
		change(&s)
		return hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{s}}
	}
	mode := func(m fs.FileMode) hotupdate.Request { return source(func(s *hotupdate.Source) { s.Mode = m }) }
	format := func(f hotupdate.Format) hotupdate.Request {
		return source(func(s *hotupdate.Source) { s.Name, s.Format = "", f })
	}
	version := func(v string) hotupdate.Request {
		return hotupdate.Request{Version: v, Sources: []hotupdate.Source{{Name: "a"}}}
	}
	for name, tt := range map[string]struct {
		request hotupdate.Request
		valid   bool
	}{
		"the longest version":            {version(strings.Repeat("v", 256)), true},
		"a longer version":               {version(strings.Repeat("v", 257)), false},
		"no version":                     {version(""), false},
		"a trigger that brings no files": {hotupdate.Request{Version: "v1", Trigger: "configmap"}, true},
		"a file for its owner alone":     {mode(0o600), true},
		"a file to be read and run":      {mode(0o755), true},
		"a file that no owner can read":  {mode(0o200), false},
		"a file with setuid":             {mode(fs.ModeSetuid | 0o755), false},
		"a folder":                       {mode(fs.ModeDir | 0o755), false},
		"a digest":                       {source(func(s *hotupdate.Source) { s.SHA256 = strings.Repeat("0a", 32) }), true},
		"a longer digest":                {source(func(s *hotupdate.Source) { s.SHA256 = strings.Repeat("0a", 33) }), false},
		"http":                           {source(func(s *hotupdate.Source) { s.URL = "http://h/a" }), true},
		"a URL that cannot be parsed":    {source(func(s *hotupdate.Source) { s.URL = "http://h/%zz" }), false},
		"an archive without a folder":    {format(hotupdate.Zip), true},
		"an archive, gzipped":            {format(hotupdate.TarGz), true},
		"a file without a name":          {format(hotupdate.Plain), false},
		"two archives in one folder": {hotupdate.Request{Version: "v1", Sources: []hotupdate.Source{
			{Name: "d", Format: hotupdate.Zip}, {Name: "d", Format: hotupdate.TarGz},
		}}, true},
	} {
		if err := tt.request.Validate(); (err == nil) != tt.valid || err != nil && !errors.Is(err, hotupdate.ErrInvalid) {
			t.Errorf("%s: %v, want valid: %t", name, err, tt.valid)
		}
	}
}

// The message is the result that operators see.
func TestFailureSaysWhatBecameOfTheFiles(t *testing.T) {
	t.Parallel()
	verify, again := errors.New("exit code 1"), errors.New("disk is full")
	for name, tt := range map[string]struct {
		failure hotupdate.Failure
		want    string
		causes  int
	}{
		"nothing changed":           {hotupdate.Failure{Phase: "verify", Err: verify}, "verify: exit code 1", 1},
		"rolled back":               {hotupdate.Failure{Phase: "verify", Err: verify, RolledBack: true}, "verify: exit code 1 (rolled back)", 1},
		"not rolled back":           {hotupdate.Failure{Phase: "verify", Err: verify, RollbackErr: again}, "verify: exit code 1 (roll back: disk is full)", 2},
		"rolled back with an error": {hotupdate.Failure{Phase: "verify", Err: verify, RolledBack: true, RollbackErr: again}, "verify: exit code 1 (roll back: disk is full)", 2},
	} {
		if got := tt.failure.Error(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if causes := tt.failure.Unwrap(); len(causes) != tt.causes || !errors.Is(&tt.failure, verify) || errors.Is(&tt.failure, again) != (tt.causes == 2) {
			t.Errorf("%s: causes %v", name, causes)
		}
	}
}
