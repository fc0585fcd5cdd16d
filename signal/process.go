package signal

import (
	"fmt"

	"github.com/refit-project/refit/internal/foreign"
)

// maxTitle is how much of a command line, or of other untrusted text, is kept for display, in bytes.
const maxTitle = 128

// Process is one process as it was read. PID and Start together identify it until the next boot.
type Process struct {
	PID, PPID int
	// Start is the start time, in clock ticks after boot (field 22 of /proc/<pid>/stat).
	Start uint64
	// UID is the real user ID.
	UID int
	// Comm is the kernel's name of the process, at most 15 bytes, and Title the beginning of the command line with
	// arguments separated by spaces. Both are written by the process and may contain any bytes.
	Comm, Title string
	// Container is the ID of the container whose cgroup contains the process; empty if there is none or it is hidden.
	Container string
	// Sandbox marks processes that selectors match only if they name the container: PID 1 of the namespace, the parent of a
	// pod, and the pause process of any sandbox.
	Sandbox bool
}

// String quotes the text that the process can write.
func (p Process) String() string {
	return fmt.Sprintf("PID %d (%q, %q, UID %d)", p.PID, p.Comm, p.Title, p.UID)
}

func clip(b []byte) string {
	if len(b) <= maxTitle {
		return string(b) // unchanged, because selectors compare it
	}
	return foreign.Shorten(string(b), maxTitle)
}
