package signal

import (
	"bytes"
	"errors"
	"fmt"
)

var errMalformed = errors.New("malformed")

// kernelThread is PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

// stat is what is used of /proc/<pid>/stat.
type stat struct {
	comm   []byte // aliases the input
	state  byte
	ppid   int
	flags  uint64
	start  uint64
	kernel bool
}

// dead reports whether a signal would reach nobody.
func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

// parseStat reads the text of /proc/<pid>/stat. A process may call itself "a) S 1", newline included, and
// the kernel does not escape it here; so comm ends at the last parenthesis.
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return stat{}, fmt.Errorf("stat: %w: no comm", errMalformed)
	}
	s := stat{comm: b[open+1 : end]}
	rest := b[end+1:]
	for field := 3; field <= 22; field++ {
		var word []byte
		word, rest = nextWord(rest)
		if len(word) == 0 {
			return stat{}, fmt.Errorf("stat: %w: no field %d", errMalformed, field)
		}
		var ok bool
		switch field {
		case 3:
			s.state, ok = word[0], len(word) == 1
		case 4:
			var n uint64
			n, ok = parseUint(word)
			if ok = ok && n <= maxPID; ok {
				s.ppid = int(n) //nolint:gosec // at most maxPID
			}
		case 9:
			s.flags, ok = parseUint(word)
			s.kernel = s.flags&kernelThread != 0
		case 22:
			s.start, ok = parseUint(word)
		default:
			ok = true
		}
		if !ok {
			return stat{}, fmt.Errorf("stat: %w: field %d", errMalformed, field)
		}
	}
	return s, nil
}

// credentials are what is used of /proc/<pid>/status.
type credentials struct {
	uid, euid int
	// capabilities is the effective set, bit n for capability n of capabilities(7).
	capabilities uint64
}

// parseCredentials reads the text of /proc/<pid>/status. The kernel escapes newlines of the name here, so
// that a line is what it says. Capabilities are optional: gVisor has none.
func parseCredentials(b []byte) (credentials, error) {
	line, ok := statusLine(b, "\nUid:")
	if !ok {
		return credentials{}, fmt.Errorf("status: %w: no Uid", errMalformed)
	}
	var c credentials
	for _, id := range []*int{&c.uid, &c.euid} {
		var word []byte
		word, line = nextWord(line)
		n, ok := parseUint(word)
		if !ok || n > 1<<32-1 {
			return credentials{}, fmt.Errorf("status: %w: Uid", errMalformed)
		}
		*id = int(n)
	}
	if line, ok := statusLine(b, "\nCapEff:"); ok {
		word, _ := nextWord(line)
		for _, d := range word {
			n := bytes.IndexByte([]byte("0123456789abcdef"), d)
			if n < 0 || len(word) > 16 {
				return credentials{}, fmt.Errorf("status: %w: CapEff", errMalformed)
			}
			c.capabilities = c.capabilities<<4 | uint64(n)
		}
	}
	return c, nil
}

func statusLine(b []byte, key string) ([]byte, bool) {
	_, rest, ok := bytes.Cut(b, []byte(key))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return line, ok
}

func nextWord(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " \t\n")
	if i := bytes.IndexAny(b, " \t\n"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// parseUint reads decimal digits without the allocation that strconv would need for bytes.
func parseUint(b []byte) (uint64, bool) {
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
