package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refit-project/refit/test/kit/markdown"
)

// tutorialTimeout is for one page.
const tutorialTimeout = 4 * time.Minute

// TestTutorials does what the pages in docs/tutorials say, in the order of the page and in one shell, as their reader does.
func TestTutorials(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(root(), "docs", "tutorials", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no tutorials: %v", err)
	}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			blocks, err := markdown.Read(page)
			s.check(err, "read the tutorial")
			s.doAsWritten(blocks)
		})
	}
}

// doAsWritten runs the blocks in a folder that looks like a checkout, with kubectl, kubectl-refit and the fixture's namespace.
func (s *fixture) doAsWritten(blocks []markdown.Block) {
	s.t.Helper()
	folder := s.desk()
	script := s.script(blocks)
	if strings.Contains(script, "kind: SidecarSet") {
		s.t.Cleanup(s.cleanSidecarSets)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), tutorialTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", script)
	command.Dir = folder
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"), "PATH="+filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	// A group of its own, so that what runs in the background ends too.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	began := time.Now()
	err := command.Run()
	s.t.Logf("%.1f s:\n%s", time.Since(began).Seconds(), &out)
	s.check(err, "the last of these commands")
}

// script is one shell script of all blocks that are run, with the images of this cluster.
func (s *fixture) script(blocks []markdown.Block) string {
	s.t.Helper()
	text := "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
	run := 0
	for _, block := range blocks {
		switch block.Mark {
		case markdown.File:
			text += fmt.Sprintf("cat >%s <<'END OF FILE'\n%sEND OF FILE\n", block.Value, block.Text)
		case markdown.Cluster:
			text += fmt.Sprintf("echo '== line %d'\nset -x\n%s{ set +x; } 2>/dev/null\n", block.Line, block.Text)
			run++
		}
	}
	if run == 0 {
		s.t.Fatal("the page has no block that is run")
	}
	image := regexp.MustCompile(`/([^/:]+):[^/]+$`)
	for _, pushed := range s.deploy.Images {
		if parts := image.FindStringSubmatch(pushed); parts != nil {
			text = strings.ReplaceAll(text, "registry.example.com/refit/"+parts[1]+":v0.1.0", pushed)
		}
	}
	if missing := regexp.MustCompile(`registry\.example\.com/refit/[^ ]+`).FindString(text); missing != "" {
		s.t.Fatalf("image %s has not been pushed: hack/images.sh --tests", missing)
	}
	return text
}

// desk is a folder with the files that the tutorials refer to, a kubeconfig and the programs.
func (s *fixture) desk() string {
	s.t.Helper()
	folder := s.t.TempDir()
	kubectl, err := exec.LookPath(s.program)
	s.check(err, "find kubectl")
	refit, err := tool()
	s.check(err, "build kubectl-refit")
	s.check(os.Mkdir(filepath.Join(folder, "bin"), 0o750), "make folder")
	for name, target := range map[string]string{
		"deploy": filepath.Join(root(), "deploy"), "examples": filepath.Join(root(), "examples"), "bin/kubectl": kubectl, "bin/kubectl-refit": refit,
	} {
		target, err := filepath.Abs(target)
		s.check(err, "find %s", name)
		s.check(os.Symlink(target, filepath.Join(folder, name)), "link %s", name)
	}
	config, err := s.kubectl(s.t.Context(), "", "config", "view", "--raw", "--minify", "--flatten")
	s.check(err, "read kubeconfig: %s", config)
	own := filepath.Join(folder, "kubeconfig")
	s.check(os.WriteFile(own, []byte(config), 0o600), "write kubeconfig")
	out, err := s.kubectl(s.t.Context(), "", "--kubeconfig", own, "config", "set-context", "--current", "--namespace", s.namespace)
	s.check(err, "set namespace: %s", out)
	return folder
}

// cleanSidecarSets deletes the SidecarSets of a tutorial that has failed: they belong to no namespace.
func (s *fixture) cleanSidecarSets() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), cleanTimeout)
	defer cancel()
	out, err := s.kubectl(ctx, "", "delete", "sidecarset", "tutorial-log", "tutorial-server", "--ignore-not-found")
	s.t.Logf("clean: %v: %s", err, out)
}
