package e2e_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/refit-project/refit/test/kit/turns"
)

// schedule has the turns of disturbances, current the turn of each test that runs, by its name.
var (
	schedule *turns.Schedule
	current  sync.Map
)

// TestMain runs the disturbances beside each other, and after them all other tests: package testing runs tests that are not parallel one
// after the other, and has no other order.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("REFIT_E2E") == "" || os.Getenv(envRegistry) != "" || valueOf("list") != "" {
		os.Exit(m.Run())
	}
	code, err := inTwoRuns(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func inTwoRuns(m *testing.M) (int, error) {
	first, then, err := divided()
	if err != nil {
		return 0, err
	}
	parallel, err := strconv.Atoi(valueOf("parallel"))
	if err != nil {
		return 0, fmt.Errorf("-parallel: %w", err)
	}
	code, skip := 0, valueOf("skip")
	if count, exactly := matching(first, valueOf("run"), skip); count > 0 {
		if !exactly {
			count = 0 // they begin as they come
		}
		schedule = turns.New(parallel, count)
		code, err = runWithout(m, skip, then, max(parallel, len(first)))
	}
	if others, _ := matching(then, valueOf("run"), skip); err == nil && others > 0 && (code == 0 || valueOf("failfast") != "true") {
		var second int
		second, err = runWithout(m, skip, first, parallel)
		code = max(code, second)
	}
	return code, err
}

// runWithout runs the tests that are selected, without those that the flag or the names leave out.
func runWithout(m *testing.M, skip string, names []string, parallel int) (int, error) {
	left := "^(" + strings.Join(names, "|") + ")$"
	if skip != "" {
		left = skip + "|" + left
	}
	if err := errors.Join(flag.Set("test.skip", left), flag.Set("test.parallel", strconv.Itoa(parallel))); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func valueOf(name string) string { return flag.Lookup("test." + name).Value.String() }

var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\t(inTurn\(t\)\n)?`)

// divided are the names of the disturbances and of all other tests of the package. An error says that the table disturbances and the
// tests that begin with inTurn are not the same: the first test would wait for others in vain.
func divided() (first, then []string, err error) {
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		return nil, nil, fmt.Errorf("find the tests in their folder: %d files, %w", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			if name := match[1]; match[2] == "" {
				then = append(then, name)
			} else {
				first = append(first, name)
			}
		}
	}
	var rows []string
	for _, row := range disturbances {
		rows = append(rows, row.test)
	}
	slices.Sort(rows)
	if slices.Sort(first); !slices.Equal(rows, first) {
		return nil, nil, fmt.Errorf("disturbances has the tests %q, with inTurn begin %q", rows, first)
	}
	return first, then, nil
}

// rankOf is the place of a test in disturbances, or less than 0.
func rankOf(name string) int {
	return slices.IndexFunc(disturbances, func(d disturbance) bool { return d.test == name })
}

// matching is how many of the tests the flags -run and -skip select. For alternatives with names of subtests, and for a flag -skip, it
// is no less than that.
func matching(names []string, run, skip string) (n int, exactly bool) {
	if !strings.Contains(run, "|") {
		run, _, _ = strings.Cut(run, "/")
	}
	pattern, err := regexp.Compile(run)
	if err != nil || strings.Contains(run, "/") || skip != "" {
		return len(names), false
	}
	for _, name := range names {
		if pattern.MatchString(name) {
			n++
		}
	}
	return n, true
}
