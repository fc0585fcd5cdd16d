package signal

import "bytes"

// shown converts the bytes of /proc/<pid>/cmdline in place to the line that is compared and displayed. A program that
// overwrites its title pads the rest of its arguments with NULs or spaces, so trailing ones are removed.
func shown(b []byte) []byte {
	b = bytes.TrimRight(b, "\x00 ")
	for i := range b {
		if b[i] == 0 {
			b[i] = ' '
		}
	}
	return b
}
