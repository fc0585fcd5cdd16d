package memory_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/procfs"

	"github.com/refit-project/refit/memory"
)

// TestReleaseLeavesLessResident builds a program that is loaded as ours are: a test binary with -race is not.
func TestReleaseLeavesLessResident(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var kib []int
	for _, word := range strings.Fields(string(out)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("printed %q, want three numbers", out)
		}
		kib = append(kib, n)
	}
	if len(kib) != 3 {
		t.Fatalf("printed %q, want three numbers", out)
	}
	heap, file := kib[0]-kib[1], kib[2]
	if heap < 30<<10 {
		t.Errorf("%d KiB of 32 MiB of garbage released", heap)
	}
	if file < 256 {
		t.Errorf("%d KiB of the program released, want most of it", file)
	}
}

// TestReleaseOfAProgramThatGoesOn works on itself, whichever way the test was built.
func TestReleaseOfAProgramThatGoesOn(t *testing.T) {
	t.Parallel()
	kept := strings.Repeat("kept", 1000)
	if err := memory.Release(); err != nil && !errors.Is(err, memory.ErrRelocated) {
		t.Fatal(err)
	}
	if _, err := procfs.Self(); err != nil || strings.Count(kept, "kept") != 1000 {
		t.Errorf("after the release: %v", err)
	}
}
