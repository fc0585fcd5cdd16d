package procfile

import (
	"errors"
	"strings"
	"testing"
)

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
		got, err := Cgroup([]byte(text))
		if err != nil {
			got = "error"
		}
		if got != want || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestNumbersAtTheEdges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"0": 0, "7": 7, "0012": 12, "18446744073709551615": 1<<64 - 1, "18446744073709551610": 1<<64 - 6, "00000000000000000001": 1,
	} {
		if got, ok := ParseUint([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1a", " 1", "18446744073709551616", "18446744073709551620", "28446744073709551615", "000000000000000000001", ":", "/"} {
		if got, ok := ParseUint([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestStatesAndFlagsOfAProcess(t *testing.T) {
	t.Parallel()
	line := func(state, ppid, flags string) []byte {
		return []byte("8 (x) " + state + " " + ppid + " 8 8 0 -1 " + flags + " 0 0 0 0 0 0 0 0 20 0 1 0 5\n")
	}
	for state, dead := range map[string]bool{"Z": true, "X": true, "x": true, "S": false, "R": false, "T": false, "D": false} {
		if s, err := ParseStat(line(state, "1", "0")); err != nil || s.Dead() != dead || s.Kernel {
			t.Errorf("state %s: %+v, %v", state, s, err)
		}
	}
	if s, err := ParseStat(line("S", "2", "2129984")); err != nil || !s.Kernel {
		t.Errorf("a kernel thread: %+v, %v", s, err)
	}
	if s, err := ParseStat(line("S", "4194304", "0")); err != nil || s.PPID != 4194304 {
		t.Errorf("the last PID: %+v, %v", s, err)
	}
	for name, text := range map[string][]byte{"a PID beyond": line("S", "4194305", "0"), "two states": line("SS", "1", "0"), "no flags": line("S", "1", "x"), "no number": line("S", "x", "0")} {
		if _, err := ParseStat(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUsersAtTheEdges(t *testing.T) {
	t.Parallel()
	for uid, valid := range map[string]bool{"0": true, "4294967295": true, "4294967296": false, "x": false} {
		c, err := ParseCredentials([]byte("\nUid:\t" + uid + "\t0\t0\t0\n"))
		if (err == nil) != valid || valid && c.EUID != 0 {
			t.Errorf("%q: %+v, %v", uid, c, err)
		}
	}
}

func TestIDsOfContainersAreLowerCaseHexadecimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		strings.Repeat("a", 64): true, strings.Repeat("0", 64): true, strings.Repeat("A", 64): false, strings.Repeat("g", 64): false,
		strings.Repeat("a", 65): false, strings.Repeat("a", 63): false,
	} {
		if got, err := Cgroup([]byte("0::/kubepods/" + text + "\n")); err != nil || (got != "") != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
