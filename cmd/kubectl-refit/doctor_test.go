package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refit-project/refit/internal/console"
)

// A part of an archive would be taken for the whole.
func TestInterruptedBundleLeavesNoFile(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "refit.tar.gz")
	var out strings.Builder
	root := command("test")
	root.SetArgs([]string{"doctor", "--bundle=" + file, "--server=http://127.0.0.1:1", "--kubeconfig="})
	root.SetOut(&out)
	root.SetErr(&out)
	if err := root.ExecuteContext(ctx); console.ExitCode(err) != console.ExitInterrupted {
		t.Errorf("exit code %d: %v", console.ExitCode(err), err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) || strings.Contains(out.String(), "is written") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
