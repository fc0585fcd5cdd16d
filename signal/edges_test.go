package signal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/signal/procfile"
)

func TestParseAndNameAtTheEdges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]syscall.Signal{
		"1": 1, "64": 64, "RTMIN+0": 34, "RTMIN+30": 64, "RTMAX-0": 64, "RTMAX-30": 34, "RTMAX-31": 0, "RTMAX+1": 0,
	} {
		if got, err := Parse(text); (err == nil) != (want != 0) || err == nil && got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for sig, want := range map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", 33: "33", 34: "SIGRTMIN+0", 64: "SIGRTMIN+30", 65: "65",
	} {
		if got := Name(sig); got != want {
			t.Errorf("Name(%d) = %q, want %q", sig, got, want)
		}
	}
}

func TestChoiceOutOfRangeSaysItsNumber(t *testing.T) {
	t.Parallel()
	for choice, want := range map[Choice]string{Only - 1: fmt.Sprintf("Choice(%d)", Only-1), All + 1: fmt.Sprintf("Choice(%d)", All+1)} {
		if got := choice.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAmbiguousErrorListsTheFirstCandidates(t *testing.T) {
	t.Parallel()
	of := func(n int) string {
		e := &AmbiguousError{Reason: "want one"}
		for pid := range n {
			e.Candidates = append(e.Candidates, Process{PID: pid + 1, Comm: "game", Title: "game -x"})
		}
		return e.Error()
	}
	const first = `PID 1 ("game", "game -x", UID 0)`
	if got, want := of(2), `2 processes match, want one: `+first+`; PID 2 ("game", "game -x", UID 0)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := of(maxShown); strings.Contains(got, "more") || !strings.Contains(got, fmt.Sprintf("PID %d ", maxShown)) {
		t.Errorf("%d candidates: %s", maxShown, got)
	}
	if got := of(maxShown + 3); !strings.HasSuffix(got, " and 3 more") || strings.Contains(got, fmt.Sprintf("PID %d ", maxShown+1)) {
		t.Errorf("%d candidates: %s", maxShown+3, got)
	}
}

func TestTitleIsCutAfterItsLimit(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("x", 128)
	if got := clip([]byte(whole)); got != whole {
		t.Errorf("%d bytes became %q", maxTitle, got)
	}
	if got := clip([]byte(whole + "x")); got != whole+"…" {
		t.Errorf("%d bytes became %q", maxTitle+1, got)
	}
	// A character that the limit cuts is left out.
	if got, want := clip([]byte(whole[1:]+"é")), whole[1:]+"…"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefusalsOfTheKernel(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		syscall.EACCES: true, syscall.EPERM: true, syscall.ENOENT: false, syscall.ESRCH: false, fs.ErrClosed: false,
	} {
		if got := denied(&fs.PathError{Op: "open", Path: "/proc/1/exe", Err: err}); got != want {
			t.Errorf("denied(%v) = %t, want %t", err, got, want)
		}
	}
}

func TestErrorNamesWhatMayHaveHiddenAProcess(t *testing.T) {
	t.Parallel()
	const hidden, outside = "the executable of 2 could not be read", "shows a container in its cgroup path"
	byContainer := Selector{Container: identity.ContainerID{Runtime: "containerd", ID: "a"}}
	for name, test := range map[string]struct {
		selector Selector
		search   search
		want     []string
	}{
		"nothing was looked at":          {selector: byContainer},
		"no container is asked for":      {search: search{inspected: 3}},
		"one shows its container":        {selector: byContainer, search: search{inspected: 3, contained: 1}},
		"none shows its container":       {selector: byContainer, search: search{inspected: 3}, want: []string{outside}},
		"two executables are hidden":     {search: search{inspected: 3, blind: 2}, want: []string{hidden}},
		"executables, and no containers": {selector: byContainer, search: search{inspected: 3, blind: 2}, want: []string{hidden, outside}},
	} {
		var sum search
		sum.add(test.search) // as the passes over shares of the processes are added up
		err := sum.notFound(&matcher{Selector: test.selector})
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
		for _, hint := range []string{hidden, outside} {
			if strings.Contains(err.Error(), hint) != slices.Contains(test.want, hint) {
				t.Errorf("%s: %v, want the hints %q", name, err, test.want)
			}
		}
	}
}

func TestSandboxProcessIsKnownByNameAndProgram(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		comm, title string
		want        bool
	}{
		{"pause", "/pause", true}, {"pause", "/usr/bin/pause -v", true}, {"pause", "game", false}, {"game", "/pause", false},
	} {
		if got := isPause(Process{Comm: test.comm, Title: test.title}); got != test.want {
			t.Errorf("%+v: %t, want %t", test, got, test.want)
		}
	}
}

func TestDirectoryRecordsThatAreTooShort(t *testing.T) {
	t.Parallel()
	record := func(name string, size byte) []byte {
		b := make([]byte, max(int(size), 24))
		b[16] = size
		copy(b[19:], name)
		return b
	}
	visited := 0
	visit := func(int) { visited++ }
	if err := parseDirents(append(record("12", 24), record("x", 24)...), visit); err != nil || visited != 1 {
		t.Errorf("two records: %d visited, %v", visited, err)
	}
	for _, size := range []byte{0, 18, 19, 200} {
		if err := parseDirents(record("12", size)[:24], visit); !errors.Is(err, procfile.ErrMalformed) {
			t.Errorf("record that says it has %d bytes: %v, want malformed", size, err)
		}
	}
}
