package e2e_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
)

// watching runs kubectl-refit in the test's namespace, hands over what it says line by line, and ends it with the context.
func (s *fixture) watching(ctx context.Context, args ...string) <-chan string {
	s.t.Helper()
	path, err := tool()
	s.check(err, "build kubectl-refit")
	ctx, cancel := context.WithTimeout(ctx, patience)
	s.t.Cleanup(cancel)
	command := exec.CommandContext(ctx, path, append(args, "--namespace", s.namespace)...)
	command.Env = os.Environ()
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	out, err := command.StdoutPipe()
	s.check(err, "read what kubectl-refit says")
	s.check(command.Start(), "run kubectl-refit")
	lines := make(chan string)
	go func() {
		defer close(lines)
		text := bufio.NewScanner(out)
		for text.Scan() {
			select {
			case lines <- text.Text():
			case <-ctx.Done():
			}
		}
		_ = command.Wait() // what counts is what it has said
	}()
	return lines
}
