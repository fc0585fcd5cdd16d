package hotupdate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
)

// victimEnv makes the test binary an updater of the folder it names, killed after the step of killEnv.
const (
	victimEnv = "REFIT_HOTUPDATE_TEST_DIR"
	killEnv   = "REFIT_HOTUPDATE_TEST_KILL"
)

var (
	oldSet = files{"a": "1", "sub/b": "1", "gone": "1", "plain": "mine"}
	newSet = files{"a": "2", "sub/b": "2", "added": "2", "plain": "2"}
)

// beVictim updates to newSet and counts its steps; it is killed after the requested one.
func beVictim() {
	last, err := strconv.Atoi(os.Getenv(killEnv))
	if err != nil {
		panic(err)
	}
	n := 0
	u, err := hotupdate.OpenWithSteps(context.Background(), hotupdate.Config{Dir: os.Getenv(victimEnv)}, func(name string) {
		if n++; n == last {
			fmt.Print(name)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err == nil {
		_, err = u.Apply(context.Background(), inline("v2", newSet))
	}
	if err != nil {
		panic(err)
	}
}

// runVictim returns the step the victim was killed at, or none when it came to its end.
func runVictim(t *testing.T, dir string, last int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+dir, killEnv+"="+strconv.Itoa(last))
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return string(out)
	}
	if err != nil {
		t.Fatalf("victim: %v\n%s", err, exit.Stderr)
	}
	return ""
}

// Atomic apply: kill -9 at every step leaves the old or the new revision complete, before and after the next
// start, and the update can be made then. The next start is killed at every step as well.
func TestAtomicApplySurvivesAKillAtEveryStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts some eighty processes")
	}
	var steps []string
	for last := 1; ; last++ {
		b := newBench(t, files{"plain": "mine"}, nil)
		b.apply(t, inline("v1", files{"a": "1", "sub/b": "1", "gone": "1"}))
		b.Close()
		step := runVictim(t, b.dir, last)
		if step == "" {
			break
		}
		steps = append(steps, step)
		checkOldOrNew(t, b.dir, "killed at "+step)
		// The second process is killed in its recovery, and early in its own attempt.
		if again := runVictim(t, b.dir, 1+last%5); again != "" {
			checkOldOrNew(t, b.dir, "killed at "+step+", then at "+again)
		}
		b.told = nil
		b.open(t, nil)
		after := checkOldOrNew(t, b.dir, "opened after "+step)
		if current := b.Revisions(); (current[0].Version == "v2") != (after == "new") {
			t.Errorf("after %s the %s files are in place, and current is %+v", step, after, current)
		}
		b.apply(t, inline("v2", newSet))
		b.check(t, newSet)
		b.checkClean(t)
		b.Close()
	}
	t.Logf("killed at %d steps: %s", len(steps), strings.Join(steps, ", "))
	for _, want := range []string{"fetched", "sealed", "adopted", "journaled", "linked", "swapped", "unlinked", "reloaded", "verified", "settled"} {
		if !strings.Contains(strings.Join(steps, " "), want) {
			t.Errorf("never killed at %s", want)
		}
	}
}

func checkOldOrNew(t *testing.T, dir, when string) string {
	t.Helper()
	seen := see(t, dir)
	if cmp.Equal(newSet, seen) {
		return "new"
	}
	if diff := cmp.Diff(oldSet, seen); diff != "" {
		t.Errorf("%s: neither the new files nor the old ones (-old +got):\n%s", when, diff)
	}
	return "old"
}

// If the program may have loaded another revision than the current one, Interrupted reports it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	want := map[string]bool{"fetched": false, "sealed": false, "adopted": false, "journaled": true, "reloaded": true, "verified": true, "settled": false}
	for last := 1; ; last++ {
		b := newBench(t, files{"plain": "mine"}, nil)
		b.Close()
		step := runVictim(t, b.dir, last)
		if step == "" {
			break
		}
		b.open(t, nil)
		if want, ok := want[step]; ok && b.Interrupted() != want {
			t.Errorf("killed at %s: interrupted %v", step, b.Interrupted())
		}
		if step == "reloaded" {
			if err := b.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			b.checkTold(t, hotupdate.InitialVersion)
		}
		b.Close()
	}
}

// A state that cannot be read does not prevent the start or updates.
func TestOpenAfterDamage(t *testing.T) {
	t.Parallel()
	tests := map[string]func(dir string) error{
		"state is rubbish": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "..refit/state.json"), []byte("{"), 0o600)
		},
		"state names paths": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "..refit/state.json"), []byte(`{"current":"../../x","accepted":["../../x"]}`), 0o600)
		},
		"state is gone": func(dir string) error { return os.Remove(filepath.Join(dir, "..refit/state.json")) },
		"link is gone":  func(dir string) error { return os.Remove(filepath.Join(dir, "..data")) },
		"file is gone":  func(dir string) error { return os.Remove(filepath.Join(dir, "a")) },
		"link leads elsewhere": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "..data")), os.Symlink("/etc", filepath.Join(dir, "..data")))
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, nil)
			b.apply(t, inline("v1", files{"a": "1"}))
			b.Close()
			if err := damage(b.dir); err != nil {
				t.Fatal(err)
			}
			b.open(t, nil)
			b.check(t, files{"a": "1"})
			b.apply(t, inline("v2", files{"a": "2"}))
			b.check(t, files{"a": "2"})
		})
	}
}

func TestOpenRefusesASecondProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	if _, err := hotupdate.Open(t.Context(), hotupdate.Config{Dir: b.dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("err = %v", err)
	}
}
