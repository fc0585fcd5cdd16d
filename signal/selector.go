package signal

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/refit-project/refit/identity"
)

// Selector says which process is meant. Every condition that is set must hold, and at least one must be set.
//
// A command line is compared as it is shown: arguments separated by single spaces, without trailing ones.
type Selector struct {
	// Title is a process title such as "nginx: master process nginx": the whole command line or its
	// beginning up to a space.
	Title string
	// Program is a process title as Title, compared with the command line without the folder of the program:
	// "nginx -g" is of "/usr/sbin/nginx -g daemon off;". Arguments are never compared.
	Program string
	// Comm is the kernel's name of the process, at most 15 bytes, equal as a whole.
	Comm string
	// Cmdline, CmdlinePrefix and CmdlineContains are compared with the command line, CmdlineRegexp is
	// searched in it (RE2, unanchored). The first 128 KiB count.
	Cmdline, CmdlinePrefix, CmdlineContains, CmdlineRegexp string
	// Exe is the absolute path of the executable in its own container. It can be read of processes with our
	// own UID, of others with CAP_SYS_PTRACE only.
	Exe string
	// UID is the real user ID.
	UID *int
	// Container is the instance whose cgroup must hold the process.
	Container identity.ContainerID
	// Choice is what to do with more than one match.
	Choice Choice
}

const (
	// maxComm is TASK_COMM_LEN without its NUL.
	maxComm = 15
	// maxProgramDir is PATH_MAX: what a folder can take in front of a program.
	maxProgramDir = 4 << 10
	// maxPattern keeps patterns well below maxCmdline, so that what is cut off never decides.
	maxPattern = 16 << 10
)

// Validate reports all faults at once.
func (s Selector) Validate() error {
	_, err := s.compile()
	return err
}

// String is for messages.
func (s Selector) String() string {
	var parts []string
	for _, c := range s.texts() {
		if c.value != "" {
			parts = append(parts, fmt.Sprintf("%s %q", c.name, c.value))
		}
	}
	if s.UID != nil {
		parts = append(parts, fmt.Sprintf("UID %d", *s.UID))
	}
	if !s.Container.IsZero() {
		parts = append(parts, "container "+s.Container.ID)
	}
	return strings.Join(parts, ", ")
}

type text struct{ name, value string }

func (s Selector) texts() []text {
	return []text{
		{"title", s.Title}, {"program", s.Program}, {"comm", s.Comm}, {"command line", s.Cmdline},
		{"command line prefix", s.CmdlinePrefix}, {"command line part", s.CmdlineContains},
		{"command line regexp", s.CmdlineRegexp}, {"executable", s.Exe},
	}
}

// matcher is a valid Selector, ready to be compared.
type matcher struct {
	Selector
	re *regexp.Regexp
	// cmdline is how much of a command line must be read, 0 when none.
	cmdline int
}

func (s Selector) compile() (*matcher, error) {
	var faults []error
	m := &matcher{Selector: s}
	for _, c := range s.texts() {
		if len(c.value) > maxPattern {
			faults = append(faults, fmt.Errorf("%s: longer than %d bytes", c.name, maxPattern))
		}
		if strings.ContainsRune(c.value, 0) {
			faults = append(faults, fmt.Errorf("%s: holds a NUL byte", c.name))
		}
	}
	if s.String() == "" {
		faults = append(faults, errors.New("no condition set: it would match every process"))
	}
	if len(s.Comm) > maxComm {
		faults = append(faults, fmt.Errorf("comm %q: the kernel keeps %d bytes; use the title or the executable", s.Comm, maxComm))
	}
	if s.Exe != "" && s.Exe[0] != '/' {
		faults = append(faults, fmt.Errorf("executable %q: not an absolute path", s.Exe))
	}
	if s.UID != nil && (*s.UID < 0 || *s.UID > 1<<32-2) {
		faults = append(faults, fmt.Errorf("UID %d: out of range", *s.UID))
	}
	if s.Choice < Only || s.Choice > All {
		faults = append(faults, fmt.Errorf("choice %d: unknown", s.Choice))
	}
	if s.CmdlineRegexp != "" {
		var err error
		if m.re, err = regexp.Compile(s.CmdlineRegexp); err != nil {
			faults = append(faults, fmt.Errorf("command line regexp: %w", err))
		}
	}
	switch {
	case s.Cmdline != "" || s.CmdlineContains != "" || s.CmdlineRegexp != "":
		m.cmdline = maxCmdline
	case s.Title != "" || s.Program != "" || s.CmdlinePrefix != "":
		m.cmdline = max(firstRead, len(s.Title)+1, maxProgramDir+len(s.Program)+1, len(s.CmdlinePrefix))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("process selector: %w", errors.Join(faults...))
	}
	return m, nil
}

// matchCmdline compares what shown made of a command line.
func (m *matcher) matchCmdline(line []byte) bool {
	switch {
	case m.Title != "" && !isTitle(line, m.Title),
		m.Program != "" && !isTitle(withoutDir(line), m.Program),
		m.Cmdline != "" && string(line) != m.Cmdline,
		m.CmdlinePrefix != "" && !bytes.HasPrefix(line, []byte(m.CmdlinePrefix)),
		m.CmdlineContains != "" && !bytes.Contains(line, []byte(m.CmdlineContains)),
		m.re != nil && !m.re.Match(line):
		return false
	}
	return true
}

// withoutDir drops the folder of the program, up to the last slash of the first word.
func withoutDir(line []byte) []byte {
	end := bytes.IndexByte(line, ' ')
	if end < 0 {
		end = len(line)
	}
	return line[bytes.LastIndexByte(line[:end], '/')+1:]
}

func isTitle(line []byte, title string) bool {
	return bytes.HasPrefix(line, []byte(title)) && (len(line) == len(title) || line[len(title)] == ' ')
}
