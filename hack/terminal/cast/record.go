package cast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// Recorder runs commands one after another in a terminal and records it.
type Recorder struct {
	Recording
	began time.Time
	// dir and env are what the commands run with.
	dir string
	env []string
	// Pause is the time for reading: after a line was shown and before it is run, and after it has ended.
	Pause time.Duration
}

// NewRecorder returns a Recorder whose commands run in a folder and with the variables env in addition to the variables of this program.
func NewRecorder(title string, columns, lines int, dir string, env ...string) *Recorder {
	return &Recorder{Recording: Recording{Title: title, Columns: columns, Lines: lines}, began: time.Now(), dir: dir, env: env}
}

// Prompt is what precedes a command, and PlainPrompt the same without colours.
const (
	Prompt      = "\x1b[32m$\x1b[0m "
	PlainPrompt = "$ "
)

// Run shows a prompt and a line, runs the line in a shell with the terminal, and records what appears there. An error has what the
// command wrote.
func (r *Recorder) Run(ctx context.Context, line string) error {
	r.add(Prompt + "\x1b[1m" + line + "\x1b[0m\r\n")
	if err := r.pause(ctx); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir = r.dir
	command.Env = append(os.Environ(), append([]string{"TERM=xterm-256color", "LANG=C.UTF-8", "NO_COLOR="}, r.env...)...)
	// The shell is the leader of a session, so all that it has started has its terminal, which is read until the last of it ends.
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: uint16(r.Lines), Cols: uint16(r.Columns)})
	if err != nil {
		return fmt.Errorf("run %s: %w", line, err)
	}
	defer func() { _ = terminal.Close() }()
	first := len(r.Events)
	read := make(chan error, 1)
	go func() { read <- r.read(terminal) }()
	failed := command.Wait()
	// EIO is the end.
	if err := <-read; err != nil && !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("read what %s writes: %w", line, err)
	}
	if failed != nil {
		return fmt.Errorf("run %s: %w:\n%s", line, failed, text(r.Events[first:]))
	}
	return r.pause(ctx)
}

func (r *Recorder) pause(ctx context.Context) error {
	timer := time.NewTimer(r.Pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Recorder) read(terminal io.Reader) error {
	var rest []byte
	for buffer := make([]byte, 4096); ; {
		n, err := terminal.Read(buffer)
		characters, more := whole(append(rest, buffer[:n]...))
		rest = more
		if characters != "" {
			r.add(characters)
		}
		if err != nil {
			return err
		}
	}
}

func (r *Recorder) add(text string) {
	r.Events = append(r.Events, Event{At: time.Since(r.began).Truncate(Precision), Text: text})
}

func text(events []Event) string {
	var all strings.Builder
	for _, event := range events {
		all.WriteString(event.Text)
	}
	return all.String()
}
