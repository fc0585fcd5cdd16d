package signal

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/signal/procfile"
)

func TestParseDirents(t *testing.T) {
	t.Parallel()
	var buf []byte
	for _, name := range []string{".", "..", "1", "self", "4194304", "4194305", "0", "12a", "32768"} {
		buf = append(buf, dirent(name)...)
	}
	var got []int
	visit := func(pid int) { got = append(got, pid) }
	if err := parseDirents(buf, visit); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 4194304, 32768}, got); diff != "" {
		t.Errorf("PIDs (-want +got):\n%s", diff)
	}
	binary.NativeEndian.PutUint16(buf[16:], 0)
	if err := parseDirents(buf, visit); !errors.Is(err, procfile.ErrMalformed) {
		t.Errorf("record of length 0: err = %v, want malformed", err)
	}
}

func dirent(name string) []byte {
	size := (19 + len(name) + 1 + 7) &^ 7
	b := make([]byte, size)
	binary.NativeEndian.PutUint16(b[16:], uint16(size))
	copy(b[19:], name)
	return b
}

func FuzzCmdline(f *testing.F) {
	f.Add([]byte("nginx: master process nginx\x00\x00\x00"), "nginx: master process nginx")
	f.Add([]byte("a\x00b\x00"), "a b")
	f.Fuzz(func(t *testing.T, b []byte, title string) {
		m, err := Selector{Title: title, CmdlinePrefix: title, CmdlineContains: title}.compile()
		if err != nil {
			return
		}
		line := shown(b)
		if strings.ContainsRune(string(line), 0) || strings.HasSuffix(string(line), " ") {
			t.Errorf("line %q", line)
		}
		if m.matchCmdline(line) && !strings.HasPrefix(string(line), title) {
			t.Errorf("%q matches title %q", line, title)
		}
	})
}

func FuzzParseDirents(f *testing.F) {
	f.Add(append(dirent("1"), dirent("self")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = parseDirents(b, func(pid int) {
			if pid < 1 || pid > procfile.MaxPID {
				t.Errorf("PID %d", pid)
			}
		})
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"HUP", "sigterm", "RTMIN+3", "SIGRTMAX-1", "9", "-1", "RTMIN+-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sig, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(Name(sig))
		if err != nil || again != sig {
			t.Errorf("Parse(%q) = %d, its name %q reads as %d, %v", s, sig, Name(sig), again, err)
		}
	})
}
