package signal

import (
	"fmt"
	"strings"
)

// maxTitle is how much of a command line, or of other foreign text, is kept to be shown, in bytes.
const maxTitle = 128

// Process is one process as it was read. PID and Start together identify it until the next boot.
type Process struct {
	PID, PPID int
	// Start is when it started, in clock ticks after boot (field 22 of /proc/<pid>/stat).
	Start uint64
	// UID is the real user ID.
	UID int
	// Comm is the name the kernel shows, at most 15 bytes, and Title the beginning of the command line with
	// arguments separated by spaces. Both are written by the process and may hold any bytes.
	Comm, Title string
	// Container is the ID of the container whose cgroup holds the process; empty when none can be seen.
	Container string
	// Sandbox marks what no selector reaches unless it names the container: PID 1 of the namespace, the
	// parent of a pod, and the pause process of any sandbox.
	Sandbox bool
}

// String quotes what the process wrote about itself.
func (p Process) String() string {
	return fmt.Sprintf("PID %d (%q, %q, UID %d)", p.PID, p.Comm, p.Title, p.UID)
}

func clip(b []byte) string {
	if len(b) <= maxTitle {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:maxTitle]), "") + "…"
}
