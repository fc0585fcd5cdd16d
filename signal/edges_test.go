package signal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
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

func TestCgroupLinesThatAreNone(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"0::/-" + id + "\n":                           id,
		"0::/" + id[1:] + "\n":                        "",
		"\n0::/" + id + "\n":                          id,
		"12:cpu:/kubepods/" + id + "\n\n0::/" + id:    id,
		"no colon at all\n":                           "error",
		"12\n":                                        "error",
		"12:one colon\n":                              "error",
		"x:cpu:/" + id + "\n":                         "error",
		":cpu:/" + id + "\n":                          "error",
		"0::/" + id + "\n1:cpu:/" + "b" + id[1:] + "": "error",
	} {
		got, err := parseCgroup([]byte(text))
		if err != nil {
			got = "error"
		}
		if got != want || err != nil && !errors.Is(err, errMalformed) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
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
	whole := strings.Repeat("x", maxTitle)
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
		if err := parseDirents(record("12", size)[:24], visit); !errors.Is(err, errMalformed) {
			t.Errorf("record that says it has %d bytes: %v, want malformed", size, err)
		}
	}
}
