package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pkg is a package whose mutants have to be noticed by its own tests, or by the tests of another package.
type pkg struct {
	path    string
	mutants []mutant
	suites  []*suite // one after the other
}

// suite is the tests of one package.
type suite struct {
	path   string
	binary string
	limit  time.Duration // for the tests with one mutant
}

// build compiles the tests of a package with all of its mutants in them, none switched on.
func build(ctx context.Context, root, path, work string) (*pkg, error) {
	r := &pkg{path: path}
	entries, err := os.ReadDir(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	tested := slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return strings.HasSuffix(entry.Name(), "_test.go") })
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_") {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, path, name))
		if err != nil {
			return nil, err
		}
		mutants, mutated, err := mutate(filepath.Join(path, name), source, len(r.mutants)+1)
		if err != nil {
			return nil, err
		}
		r.mutants = append(r.mutants, mutants...)
		copied := filepath.Join(work, strings.ReplaceAll(filepath.Join(path, name), "/", "_"))
		if err := os.WriteFile(copied, mutated, 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(root, path, name)] = copied
	}
	added := filepath.Join(work, strings.ReplaceAll(path, "/", "_")+"_mutation.go")
	if err := os.WriteFile(added, fmt.Appendf(nil, support, filepath.Base(path)), 0o600); err != nil {
		return nil, err
	}
	replace[filepath.Join(root, path, "mutation_support.go")] = added
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return nil, err
	}
	for _, tests := range []string{path, testsElsewhere[path]} {
		if tests == "" || tests == path && !tested {
			continue
		}
		of := &suite{path: tests, binary: filepath.Join(work, strings.ReplaceAll(path+"-"+tests, "/", "_")+".test")}
		command := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", file, "-o", of.binary, "./"+tests)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the mutants of %s: %w\n%s", path, err, out)
		}
		r.suites = append(r.suites, of)
	}
	return r, nil
}

// baseline runs the tests without a mutant, which must succeed.
func (r *pkg) baseline(ctx context.Context, root string) error {
	if len(r.suites) == 0 {
		return fmt.Errorf("%s has no tests", r.path)
	}
	for _, of := range r.suites {
		began := time.Now()
		of.limit = 5 * time.Minute
		result, out, err := of.run(ctx, root, 0)
		if err != nil {
			return err
		}
		if result != survived {
			return fmt.Errorf("the tests of %s fail without any mutant:\n%s", of.path, out)
		}
		of.limit = 5*time.Since(began) + 10*time.Second
	}
	return nil
}

// try runs the tests with one mutant until some notice it.
func (r *pkg) try(ctx context.Context, root string, number int) (result outcome, err error) {
	for _, of := range r.suites {
		if result, _, err = of.run(ctx, root, number); err != nil || result != survived {
			break
		}
	}
	return result, err
}

// survivors runs the tests once for each mutant, a few at a time. It returns the mutants that no test noticed, and how many
// were noticed only because the tests took too long: on a machine with other load that may be no merit of the tests.
func (r *pkg) survivors(ctx context.Context, root string, mutants []mutant, workers int) (found []mutant, late int, failed error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	next := make(chan mutant)
	for range workers {
		group.Go(func() {
			for m := range next {
				result, err := r.try(ctx, root, m.number)
				mu.Lock()
				switch {
				case err != nil:
					failed = errors.Join(failed, err)
				case result == survived:
					found = append(found, m)
				case result == tookTooLong:
					late++
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	slices.SortFunc(found, func(a, b mutant) int { return a.number - b.number })
	return found, late, failed
}

// mostMemory is what the tests of a package may use. A loop that a mutant has made endless takes all there is otherwise.
const mostMemory = 4 << 30

func limitMemory(pid int) error {
	err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: mostMemory, Max: mostMemory}, nil)
	if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
		return fmt.Errorf("limit memory: %w", err)
	}
	return nil
}

// outcome is what the tests of a package say of a mutant.
type outcome int

const (
	survived    outcome = iota // they succeeded
	noticed                    // they failed or crashed
	tookTooLong                // they were ended by the limit
)

func (s *suite) run(ctx context.Context, root string, number int) (result outcome, out []byte, err error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	command := exec.CommandContext(limited, s.binary, "-test.failfast", "-test.short", "-test.parallel=8", "-test.timeout="+s.limit.String())
	command.Dir = filepath.Join(root, s.path)
	command.Env = append(os.Environ(), "REFIT_MUTANT="+strconv.Itoa(number))
	var buffer bytes.Buffer
	command.Stdout, command.Stderr = &buffer, &buffer
	// A test that fails or hangs may leave processes of its own behind. They end with it, as its group.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endGroup := func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Cancel = endGroup
	command.WaitDelay = time.Second // for who holds their output
	if err = command.Start(); err == nil {
		err = limitMemory(command.Process.Pid)
		err = cmp.Or(command.Wait(), err)
		_ = endGroup() // there is none left where the tests were tidy
	}
	if ctx.Err() != nil {
		return survived, nil, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return survived, nil, fmt.Errorf("run the tests of %s: %w", s.path, err)
	}
	switch {
	case err == nil:
		return survived, buffer.Bytes(), nil
	case limited.Err() != nil, bytes.Contains(buffer.Bytes(), []byte("panic: test timed out after")):
		return tookTooLong, buffer.Bytes(), nil
	}
	return noticed, buffer.Bytes(), nil
}
