// Package procfile parses files of a process in proc(5). All of them are untrusted: a process chooses its name, and a
// container its cgroups.
package procfile

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrMalformed is the error for a file that no kernel writes.
var ErrMalformed = errors.New("malformed")

// MaxPID is PID_MAX_LIMIT of include/linux/threads.h.
const MaxPID = 4 << 20

// kernelThread is PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

// Stat has the used fields of /proc/<pid>/stat.
type Stat struct {
	Comm   []byte // aliases the input
	State  byte
	PPID   int
	Flags  uint64
	CPU    uint64 // user and system time of all threads, in clock ticks
	Start  uint64 // in clock ticks after boot
	Kernel bool   // a kernel thread
}

// Dead reports whether the process has ended, so that a signal has no effect.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' || s.State == 'x' }

// ParseStat reads the text of /proc/<pid>/stat. A process may call itself "a) S 1", including a newline, and the kernel
// does not escape it here; so comm ends at the last parenthesis.
func ParseStat(b []byte) (Stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Stat{}, fmt.Errorf("stat: %w: no comm", ErrMalformed)
	}
	s := Stat{Comm: b[open+1 : end]}
	rest := b[end+1:]
	for field := 3; field <= 22; field++ {
		var word []byte
		word, rest = NextWord(rest)
		if len(word) == 0 {
			return Stat{}, fmt.Errorf("stat: %w: no field %d", ErrMalformed, field)
		}
		var ok bool
		switch field {
		case 3:
			s.State, ok = word[0], len(word) == 1
		case 4:
			var n uint64
			n, ok = ParseUint(word)
			if ok = ok && n <= MaxPID; ok {
				s.PPID = int(n) //nolint:gosec // at most MaxPID
			}
		case 9:
			s.Flags, ok = ParseUint(word)
			s.Kernel = s.Flags&kernelThread != 0
		case 14, 15: // utime and stime
			var n uint64
			n, ok = ParseUint(word)
			s.CPU += n // of a process, far below the range
		case 22:
			s.Start, ok = ParseUint(word)
		default:
			ok = true
		}
		if !ok {
			return Stat{}, fmt.Errorf("stat: %w: field %d", ErrMalformed, field)
		}
	}
	return s, nil
}

// Credentials has the used fields of /proc/<pid>/status.
type Credentials struct {
	UID, EUID int
	// Capabilities is the effective set, bit n for capability n of capabilities(7).
	Capabilities uint64
}

// ParseCredentials reads the text of /proc/<pid>/status. The kernel escapes newlines of the name here, so that lines cannot
// be forged. Capabilities are optional: gVisor has none.
func ParseCredentials(b []byte) (Credentials, error) {
	line, ok := StatusLine(b, "\nUid:")
	if !ok {
		return Credentials{}, fmt.Errorf("status: %w: no Uid", ErrMalformed)
	}
	var c Credentials
	for _, id := range []*int{&c.UID, &c.EUID} {
		var word []byte
		word, line = NextWord(line)
		n, ok := ParseUint(word)
		if !ok || n > 1<<32-1 {
			return Credentials{}, fmt.Errorf("status: %w: Uid", ErrMalformed)
		}
		*id = int(n)
	}
	if line, ok := StatusLine(b, "\nCapEff:"); ok {
		word, _ := NextWord(line)
		for _, d := range word {
			n := bytes.IndexByte([]byte("0123456789abcdef"), d)
			if n < 0 || len(word) > 16 {
				return Credentials{}, fmt.Errorf("status: %w: CapEff", ErrMalformed)
			}
			c.Capabilities = c.Capabilities<<4 | uint64(n)
		}
	}
	return c, nil
}

// StatusLine returns the rest of the line of /proc/<pid>/status that begins with key.
func StatusLine(b []byte, key string) ([]byte, bool) {
	_, rest, ok := bytes.Cut(b, []byte(key))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return line, ok
}

// NextWord returns the first word and the rest.
func NextWord(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " \t\n")
	if i := bytes.IndexAny(b, " \t\n"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// ParseUint reads decimal digits without the allocation that strconv would need for bytes.
func ParseUint(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, d := range b {
		v := uint64(d - '0')
		if d < '0' || d > '9' || n > (1<<64-1-v)/10 {
			return 0, false
		}
		n = n*10 + v
	}
	return n, true
}
