package signal

import "bytes"

// shown turns the bytes of /proc/<pid>/cmdline into the line that is compared and displayed, in place. A
// program that overwrites its title pads the rest of its arguments with NULs or spaces, so trailing ones go.
func shown(b []byte) []byte {
	b = bytes.TrimRight(b, "\x00 ")
	for i := range b {
		if b[i] == 0 {
			b[i] = ' '
		}
	}
	return b
}
