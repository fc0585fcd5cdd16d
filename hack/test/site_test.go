package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/hack/step"
)

// siteWith builds the site on a machine that has only these programs, which are shell scripts by name. It returns what was printed, and the
// arguments of make.
func siteWith(t *testing.T, programs map[string]string) (said, made string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	var out bytes.Buffer
	s := &suite{root: root, report: step.New(&out, t.TempDir())}
	if err := s.site(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	arguments, err := os.ReadFile(filepath.Join(bin, "made"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out.String(), strings.TrimSpace(string(arguments))
}

const (
	// makes is make, which keeps its arguments in a file.
	makes = `echo "$@" >"${0%/*}/made"`
	// installs is apt-get, which installs mkdocs if it is named.
	installs = `case "$*" in
install*mkdocs) printf '#!/bin/sh\n' >"${0%/*}/mkdocs" && /bin/chmod 700 "${0%/*}/mkdocs" ;;
esac`
)

// TestSiteIsBuiltOnANewMachine: a page that mkdocs refuses would otherwise be found by CI only.
func TestSiteIsBuiltOnANewMachine(t *testing.T) {
	if said, made := siteWith(t, map[string]string{"make": makes, "apt-get": installs}); made != "site" {
		t.Errorf("make was called with %q\n%s", made, said)
	}
}

func TestSiteThatCannotBeBuiltIsNoFailure(t *testing.T) {
	for name, programs := range map[string]map[string]string{
		"no Debian":              {"make": makes},
		"another user than root": {"make": makes, "apt-get": "exit 100"},
	} {
		said, made := siteWith(t, programs)
		if made != "" || !strings.Contains(said, "NOT BUILT, mkdocs is not installed") {
			t.Errorf("%s: make was called with %q\n%s", name, made, said)
		}
	}
}
