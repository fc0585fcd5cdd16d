package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/hack/step"
)

// deadCode fails for functions that nothing reaches: below test and testkit no program and no test, elsewhere no program.
func (s *suite) deadCode(ctx context.Context) error {
	return s.report.Do("dead code", func() error {
		programs, err := output(ctx, s.root, s.argv(s.tool["deadcode"], "-filter="+modulePath, "./cmd/...", "./hack/...", "./test/...", "./docs/...")...)
		if err != nil {
			return err
		}
		tests, err := output(ctx, s.root, s.argv(s.tool["deadcode"], "-test", "-filter="+modulePath, "./...")...)
		if err != nil {
			return err
		}
		lines := slices.DeleteFunc(strings.Split(programs, "\n"), func(line string) bool { return strings.HasPrefix(line, "test/") })
		lines = append(lines, strings.Split(tests, "\n")...)
		if dead := strings.TrimSpace(strings.Join(lines, "\n")); dead != "" {
			return fmt.Errorf("nothing reaches:\n%s", dead)
		}
		return nil
	})
}

// rules runs the unit tests of the alerting and recording rules. Building promtool takes minutes the first time.
func (s *suite) rules(ctx context.Context) error {
	var faults []error
	for _, args := range [][]string{
		{"check", "rules", "../../deploy/chart/files/rules.yaml"},
		{"test", "rules", "rules_test.yaml"},
	} {
		faults = append(faults, s.report.Run(ctx, "promtool "+args[0]+" rules", step.Command{
			Dir: filepath.Join(s.root, "hack", "monitoring"),
			// Without service discovery, whose dependencies are most of Prometheus'. go tool does not know build tags.
			Argv: append([]string{"go", "run", "-tags=remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool"}, args...), Low: s.low,
		}))
	}
	return errors.Join(faults...)
}

// exitVulnerable is govulncheck's exit code when the program calls something vulnerable.
const exitVulnerable = 3

// vulnerabilities asks the database of known vulnerabilities. Where it cannot be reached that is said, and is no fault of
// the code.
func (s *suite) vulnerabilities(ctx context.Context) error {
	skipped := ""
	err := s.report.Do("known vulnerabilities", func() error {
		argv := s.argv(s.tool["govulncheck"], "./...")
		command := exec.CommandContext(ctx, argv[0], argv[1:]...)
		command.Dir, command.WaitDelay = s.root, time.Second
		out, err := command.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &exit) && exit.ExitCode() == exitVulnerable:
			return fmt.Errorf("known vulnerabilities:\n%s", out)
		case strings.Contains(string(out), "fetching vulnerabilities"):
			skipped = strings.TrimSpace(string(out))
			return nil
		}
		return fmt.Errorf("govulncheck: %w: %s", err, out)
	})
	if skipped != "" {
		s.report.Say("known vulnerabilities: NOT CHECKED, the database cannot be reached: %s", skipped)
	}
	return err
}
