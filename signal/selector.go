package signal

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/refit-project/refit/internal/identity"
)

// Selector selects processes. Every condition that is set must hold, and at least one must be set.
//
// Command lines are compared as they are displayed: arguments separated by single spaces, without trailing ones.
type Selector struct {
	// Title is a process title such as "nginx: master process nginx": the whole command line or its
	// beginning up to a space.
	Title string
	// Program is a process title like Title, compared with the command line without the folder of the program: "nginx -g"
	// matches "/usr/sbin/nginx -g daemon off;". Arguments are never compared.
	Program string
	// Comm is the kernel's name of the process, at most 15 bytes; it must be equal.
	Comm string
	// Cmdline, CmdlinePrefix and CmdlineContains are compared with the command line, CmdlineRegexp is
	// searched in it (RE2, unanchored). The first 128 KiB count.
	Cmdline, CmdlinePrefix, CmdlineContains, CmdlineRegexp string
	// Exe is the absolute path of the executable in its own container. It can be read for processes with our own UID, and
	// for others only with CAP_SYS_PTRACE.
	Exe string
	// UID is the real user ID.
	UID *int
	// Container is the instance whose cgroup must contain the process.
	Container identity.ContainerID
	// Choice selects among several matches.
	Choice Choice
}

const (
	// maxComm is TASK_COMM_LEN without its NUL.
	maxComm = 15
	// maxProgramDir is PATH_MAX: the maximum length of the folder before a program.
	maxProgramDir = 4 << 10
	// maxPattern keeps patterns well below maxCmdline, so that the cut-off part of a command line never matters.
	maxPattern = 16 << 10
)

// Validate returns all errors at once.
func (s Selector) Validate() error {
	_, err := s.compile()
	return err
}

// String returns a description for messages.
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

// matcher is a valid Selector with its compiled conditions.
type matcher struct {
	Selector
	re *regexp.Regexp
	// cmdline is how much of a command line must be read; 0 if none.
	cmdline int
}

func (s Selector) compile() (*matcher, error) {
	var errs []error
	m := &matcher{Selector: s}
	for _, c := range s.texts() {
		if len(c.value) > maxPattern {
			errs = append(errs, fmt.Errorf("%s: longer than %d bytes", c.name, maxPattern))
		}
		if strings.ContainsRune(c.value, 0) {
			errs = append(errs, fmt.Errorf("%s: holds a NUL byte", c.name))
		}
	}
	if s.String() == "" {
		errs = append(errs, errors.New("no condition set: it would match every process"))
	}
	if len(s.Comm) > maxComm {
		errs = append(errs, fmt.Errorf("comm %q: the kernel keeps %d bytes; use the title or the executable", s.Comm, maxComm))
	}
	if s.Exe != "" && s.Exe[0] != '/' {
		errs = append(errs, fmt.Errorf("executable %q: not an absolute path", s.Exe))
	}
	if s.UID != nil && (*s.UID < 0 || *s.UID > 1<<32-2) {
		errs = append(errs, fmt.Errorf("UID %d: out of range", *s.UID))
	}
	if s.Choice < Only || s.Choice > All {
		errs = append(errs, fmt.Errorf("choice %d: unknown", s.Choice))
	}
	if s.CmdlineRegexp != "" {
		var err error
		if m.re, err = regexp.Compile(s.CmdlineRegexp); err != nil {
			errs = append(errs, fmt.Errorf("command line regexp: %w", err))
		}
	}
	switch {
	case s.Cmdline != "" || s.CmdlineContains != "" || s.CmdlineRegexp != "":
		m.cmdline = maxCmdline
	case s.Title != "" || s.Program != "" || s.CmdlinePrefix != "":
		m.cmdline = max(firstRead, len(s.Title)+1, maxProgramDir+len(s.Program)+1, len(s.CmdlinePrefix))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("process selector: %w", errors.Join(errs...))
	}
	return m, nil
}

// matchCmdline compares a command line as returned by shown.
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

// withoutDir removes the folder of the program, up to the last slash of the first word.
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
