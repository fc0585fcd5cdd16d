package signal

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/signal/procfile"
)

// errOther means that the process does not match the selector.
var errOther = errors.New("another process")

// Find returns the process selected by sel: one, or with the choice All at least one, in order of PID.
//
// It never returns the sandbox process and this program itself, except for a PID 1 in the selector's container, nor zombies
// and kernel threads. The error is ErrNotFound, *AmbiguousError, or an error of the file system or of ctx.
//
// With the choice Only it waits up to two seconds for matches that are children of another one to become something else: a process that has
// just been forked has the title of its parent until it sets its own or executes another program (fork(2)).
func (f *FS) Find(ctx context.Context, sel Selector) ([]Process, error) {
	m, err := sel.compile()
	if err != nil {
		return nil, err
	}
	return f.find(ctx, m)
}

func (f *FS) find(ctx context.Context, m *matcher) ([]Process, error) {
	backoff := wait.Backoff{First: firstLook, Last: lastLook}
	for waited := time.Duration(0); ; {
		s, err := f.scan(ctx, m)
		if err != nil {
			return nil, err
		}
		if len(s.found) == 0 {
			return nil, s.notFound(m)
		}
		picked, err := m.Choice.pick(s.found)
		if err == nil || waited >= forkLimit || !forked(m.Choice, s.found) {
			return picked, err
		}
		pause := backoff.Next()
		if wait.For(ctx, pause) != nil {
			return nil, err
		}
		waited += pause
	}
}

// How long Find waits for a process that has just been forked, and how often it looks meanwhile. nginx's workers set their title after
// they have read group databases, which takes longer than a second on a busy machine.
const (
	forkLimit           = 2 * time.Second
	firstLook, lastLook = 10 * time.Millisecond, 160 * time.Millisecond
)

// forked reports whether one process is wanted and all others that match descend from it.
func forked(c Choice, found []Process) bool {
	_, err := parent(found)
	return c == Only && err == nil
}

// search is one pass over processes, or another check of one of them.
type search struct {
	reader
	root  int // descriptor of the proc file system
	self  int // our own PID in it
	found []Process
	// Details for the error if nothing is found: how many processes were read completely, how many of them showed a
	// container, and how many did not show their executable.
	inspected, contained, blind int
}

func (s *search) run(ctx context.Context, f *FS, m *matcher, pids []int) error {
	var err error
	if s.root, err = f.open(); err != nil {
		return err
	}
	defer func() { _ = unix.Close(s.root) }()
	s.self = f.self
	for i, pid := range pids {
		if i%share == 0 && ctx.Err() != nil {
			return fmt.Errorf("scan processes: %w", ctx.Err())
		}
		name := strconv.Itoa(pid)
		if m != nil && !s.candidate(name, m) {
			continue
		}
		p, err := s.inspect(pid, name, m)
		if err == nil {
			s.found = append(s.found, p)
		} else if !ignorable(err) {
			return err
		}
	}
	return nil
}

func (s *search) add(t search) {
	s.found = append(s.found, t.found...)
	s.inspected += t.inspected
	s.contained += t.contained
	s.blind += t.blind
}

// notFound returns ErrNotFound with what may have hidden the process.
func (s *search) notFound(m *matcher) error {
	var hints []string
	if s.blind > 0 {
		hints = append(hints, fmt.Sprintf("the executable of %d could not be read, which takes the same UID or CAP_SYS_PTRACE", s.blind))
	}
	if !m.Container.IsZero() && s.inspected > 0 && s.contained == 0 {
		hints = append(hints, "no process that was looked at shows a container in its cgroup path")
	}
	if len(hints) == 0 {
		return fmt.Errorf("%w: %s", ErrNotFound, m.Selector)
	}
	return fmt.Errorf("%w: %s (%s)", ErrNotFound, m.Selector, strings.Join(hints, "; "))
}

// candidate is the hot path: one file, three system calls per process. It may return true for a process that does not
// match; inspect decides.
func (s *search) candidate(name string, m *matcher) bool {
	switch {
	case m.cmdline > 0:
		line, err := s.file(s.root, name+"/cmdline", m.cmdline)
		return err == nil && m.matchCmdline(shown(line))
	case m.Comm != "":
		b, err := s.file(s.root, name+"/stat", maxFile)
		if err != nil {
			return false
		}
		st, err := procfile.ParseStat(b)
		return err == nil && string(st.Comm) == m.Comm
	default:
		return true
	}
}

// inspect reads all of one process and compares it with m; nil matches everything, including this program. The files are
// read through a descriptor of the process's directory, so that they are all of one process even if its PID is reused
// meanwhile.
func (s *search) inspect(pid int, name string, m *matcher) (Process, error) {
	if m != nil && pid == s.self {
		return Process{}, errOther
	}
	dir, err := openAt(s.root, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return Process{}, err
	}
	defer func() { _ = unix.Close(dir) }()

	b, err := s.file(dir, "stat", maxFile)
	if err != nil {
		return Process{}, err
	}
	st, err := procfile.ParseStat(b)
	if err != nil {
		return Process{}, fmt.Errorf("PID %d: %w", pid, err)
	}
	if st.Dead() || st.Kernel {
		return Process{}, errOther
	}
	p := Process{PID: pid, PPID: st.PPID, Start: st.Start, Comm: clip(st.Comm)}
	if b, err = s.file(dir, "status", maxFile); err != nil {
		return Process{}, err
	}
	who, err := procfile.ParseCredentials(b)
	if err != nil {
		return Process{}, fmt.Errorf("PID %d: %w", pid, err)
	}
	p.UID = who.UID
	s.inspected++
	p.Container = s.container(dir)
	line, err := s.commandLine(dir, m)
	if err != nil {
		return Process{}, err
	}
	p.Title = clip(line)
	p.Sandbox = pid == 1 || isPause(p)
	if m == nil {
		return p, nil
	}
	return p, s.compare(&p, m, line, dir)
}

// compare checks all conditions of m, the executable last, because it may cost a denied call.
func (s *search) compare(p *Process, m *matcher, line []byte, dir int) error {
	switch {
	case m.Comm != "" && p.Comm != m.Comm,
		m.UID != nil && p.UID != *m.UID,
		!m.Container.IsZero() && p.Container != m.Container.ID,
		m.cmdline > 0 && !m.matchCmdline(line):
		return errOther
	}
	if !m.Container.IsZero() {
		p.Sandbox = false
	}
	if p.Sandbox {
		return errOther
	}
	if m.Exe == "" {
		return nil
	}
	exe, err := readlinkAt(dir, "exe")
	if err != nil {
		if denied(err) {
			s.blind++
			return errOther
		}
		return err
	}
	// The kernel appends this if the file was replaced, for example by an update of the image in place.
	if strings.TrimSuffix(exe, " (deleted)") != m.Exe {
		return errOther
	}
	return nil
}

func (s *search) commandLine(dir int, m *matcher) ([]byte, error) {
	most := firstRead
	if m != nil {
		most = max(most, m.cmdline)
	}
	line, err := s.file(dir, "cmdline", most)
	return shown(line), err
}

// container returns an empty string if the cgroup file is missing, hidden or ambiguous.
func (s *search) container(dir int) string {
	b, err := s.file(dir, "cgroup", maxFile)
	if err != nil {
		return ""
	}
	id, err := procfile.Cgroup(b)
	if err != nil {
		return ""
	}
	if id != "" {
		s.contained++
	}
	return id
}

// ignorable reports errors that are normal in a pass over running processes: the process has ended, is hidden or does not
// match.
func ignorable(err error) bool {
	return gone(err) || denied(err) || errors.Is(err, errOther) || errors.Is(err, procfile.ErrMalformed)
}

// isPause recognizes the sandbox process of a pod that is not PID 1 here, for example with hostPID.
func isPause(p Process) bool {
	program, _, _ := strings.Cut(p.Title, " ")
	return p.Comm == "pause" && path.Base(program) == "pause"
}

func readlinkAt(dir int, name string) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
