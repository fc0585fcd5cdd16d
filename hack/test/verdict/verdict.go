// Package verdict judges whether the tests that should have run did: a step without a test, a required test that did
// not pass and a skip that nobody expects are faults, although go test calls all three ok.
package verdict

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tests is what one step's tests did: names with their package, as PACKAGE.TestName/subtest.
type Tests struct {
	Passed, Failed, Skipped []string
	// Needs is the minor version of Kubernetes that a skipped test has said it needs, by its name.
	Needs map[string]int
	// Messages are the first lines that a failed test has logged, by its name.
	Messages map[string][]string
}

// event is what is used of an event of go test -json, see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

var neededVersion = regexp.MustCompile(`needs Kubernetes 1\.(\d+)`)

// Read reads the events of go test -json.
func Read(events io.Reader) (Tests, error) {
	var tests Tests
	messages := messages{}
	decoder := json.NewDecoder(bufio.NewReader(events))
	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			tests.Messages = messages.of(tests.Failed)
			return tests, nil
		} else if err != nil {
			return Tests{}, fmt.Errorf("read events of go test: %w", err)
		}
		if e.Test == "" {
			continue
		}
		name := e.Package + "." + e.Test
		switch e.Action {
		case "output":
			messages.add(name, e.Output)
			if found := neededVersion.FindStringSubmatch(e.Output); found != nil {
				tests.needs(name, found[1])
			}
		case "pass":
			tests.Passed = append(tests.Passed, name)
		case "fail":
			tests.Failed = append(tests.Failed, name)
		case "skip":
			tests.Skipped = append(tests.Skipped, name)
		}
	}
}

func (t *Tests) needs(name, minor string) {
	number, err := strconv.Atoi(minor)
	if err != nil {
		return // more digits than a version has
	}
	if t.Needs == nil {
		t.Needs = map[string]int{}
	}
	t.Needs[name] = number
}

// Expected is what a step's tests are held to.
type Expected struct {
	// Required are regular expressions of names, each with the number of tests, subtests included, that have to pass.
	Required map[string]int
	// MaySkip are regular expressions of the names that may be skipped, each with the reason.
	MaySkip map[string]string
	// Kubernetes is the minor version of the cluster if tests that need a newer one may be skipped, 0 otherwise.
	Kubernetes int
}

// Check says what is wrong with the steps that ran. Steps without an entry in expected need one passed test and may
// skip none; a step of expected that did not run is a fault.
func Check(ran map[string]Tests, expected map[string]Expected) error {
	var faults []error
	for _, step := range slices.Sorted(maps.Keys(expected)) {
		if _, found := ran[step]; !found {
			faults = append(faults, fmt.Errorf("%s: did not run", step))
		}
	}
	for _, step := range slices.Sorted(maps.Keys(ran)) {
		if fault := ran[step].check(expected[step]); fault != nil {
			faults = append(faults, fmt.Errorf("%s: %w", step, fault))
		}
	}
	return errors.Join(faults...)
}

func (t Tests) check(expected Expected) error {
	var faults []error
	if len(t.Passed)+len(t.Failed) == 0 {
		faults = append(faults, errors.New("no test ran"))
	}
	for _, pattern := range slices.Sorted(maps.Keys(expected.Required)) {
		passed, err := count(pattern, t.Passed)
		if want := expected.Required[pattern]; err == nil && passed < want {
			err = fmt.Errorf("%d tests called %s passed, want at least %d", passed, pattern, want)
		}
		faults = append(faults, err)
	}
	for _, name := range t.Skipped {
		old := expected.Kubernetes > 0 && t.Needs[name] > expected.Kubernetes
		if !old && !matchesAny(name, maps.Keys(expected.MaySkip)) {
			faults = append(faults, fmt.Errorf("%s was skipped, which hack/test/expected.go does not allow", name))
		}
	}
	return errors.Join(faults...)
}

func count(pattern string, names []string) (int, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return 0, fmt.Errorf("pattern of a test: %w", err)
	}
	found := 0
	for _, name := range names {
		if compiled.MatchString(name) {
			found++
		}
	}
	return found, nil
}

func matchesAny(name string, patterns func(func(string) bool)) bool {
	for pattern := range patterns {
		if found, err := count(pattern, []string{name}); err == nil && found > 0 {
			return true
		}
	}
	return false
}

// String is one line for people.
func (t Tests) String() string {
	parts := []string{fmt.Sprintf("%d passed", len(t.Passed))}
	if len(t.Failed) > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", len(t.Failed)))
	}
	if len(t.Skipped) > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", len(t.Skipped)))
	}
	return strings.Join(parts, ", ")
}
