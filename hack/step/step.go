// Package step runs the long steps of the build programs and says how long they take. It knows nothing of what the
// steps are.
package step

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// silence is how long nothing is printed before a step that lasts says so. It is longer than the interval at which the
	// cluster's program tells its own progress, so that the lines of the two do not alternate.
	silence = 20 * time.Second
	// tailBytes of a command's output are shown when it fails.
	tailBytes = 6000
	// killDelay is what a command may take to end after SIGTERM.
	killDelay = 20 * time.Second
)

// Reporter prints one line when a step begins, one now and then while it lasts and prints nothing, and one when it ends.
type Reporter struct {
	out   *quiet
	logs  string // folder of the commands' output
	start time.Time
}

// New returns a reporter whose clock starts now. The output of commands goes to files in logs.
func New(out io.Writer, logs string) *Reporter {
	return &Reporter{out: &quiet{out: out, last: time.Now()}, logs: logs, start: time.Now()}
}

// Say prints one line with the time since the start in front.
func (r *Reporter) Say(format string, args ...any) {
	fmt.Fprintf(r.out, "[%6.1fs] %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}

// quiet is a writer that knows when it was last written to.
type quiet struct {
	out  io.Writer
	mu   sync.Mutex
	last time.Time
}

func (q *quiet) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = time.Now()
	return q.out.Write(p)
}

func (q *quiet) silentFor() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.last)
}

// Do reports a step and returns its error, which is the caller's to report.
func (r *Reporter) Do(name string, step func() error) error {
	r.Say("%s ...", name)
	began := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(silence / 4)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				if r.out.silentFor() >= silence {
					r.Say("%s: running for %s", name, time.Since(began).Round(time.Second))
				}
			}
		}
	}()
	err := step()
	close(stop)
	<-stopped
	outcome := "done"
	if err != nil {
		outcome = "FAILED"
	}
	r.Say("%s: %s in %.1f s", name, outcome, time.Since(began).Seconds())
	return err
}

// Command is a program to run as a step.
type Command struct {
	Dir  string
	Env  []string // in addition to our own
	Argv []string
	// Echo shows the output while it comes; else it is only shown, from its end, when the command fails.
	Echo bool
	// Low gives the command only what other programs leave of the processors.
	Low bool
}

// lowPriority starts the command in its arguments with the lowest priority. Linux shares the processors between sessions, unless
// that is turned off, and only then between the processes of each: sched(7).
const lowPriority = `{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"`

// LowPriority returns a command that lowers the priority of its session, and then is the one in its arguments.
func LowPriority(argv ...string) []string {
	return append([]string{"sh", "-c", lowPriority, "sh"}, argv...)
}

// Run reports a command as a step. The error holds the end of its output.
func (r *Reporter) Run(ctx context.Context, name string, command Command) error {
	return r.Do(name, func() error { return r.run(ctx, name, command) })
}

func (r *Reporter) run(ctx context.Context, name string, command Command) error {
	if err := os.MkdirAll(r.logs, 0o755); err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	path := filepath.Join(r.logs, strings.Map(fileRune, name)+".log")
	log, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	argv := command.Argv
	if command.Low {
		argv = LowPriority(argv...)
	}
	process := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// The cluster's program shows times too: from the same clock.
	process.Dir, process.Env = command.Dir, append(os.Environ(), "PROGRESS_START="+r.start.Format(time.RFC3339Nano))
	process.Env = append(process.Env, command.Env...)
	// A session and a process group of its own, so that an interrupt ends the command with all that it has started.
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGTERM) }
	process.WaitDelay = killDelay
	process.Stdout = log
	if command.Echo {
		process.Stdout = io.MultiWriter(log, r.out)
	}
	process.Stderr = process.Stdout
	err = errors.Join(process.Run(), log.Close())
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", name, ctx.Err())
	}
	if command.Echo {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s: %w; %s ends with:\n%s", name, err, path, tail(path))
}

func fileRune(r rune) rune {
	if r == '/' || r == ' ' || r == ',' {
		return '-'
	}
	return r
}

func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-tailBytes):])
}
