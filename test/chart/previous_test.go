package chart_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkout is the tree of a revision, whose images are in the registry of the cluster, in a folder of their own.
func (p *place) checkout(revision string) string {
	p.t.Helper()
	folder := filepath.Join(p.t.TempDir(), "checkout")
	p.run("git", "-C", p.root, "worktree", "add", "--detach", folder, revision)
	p.t.Cleanup(func() {
		_, _ = output(context.WithoutCancel(p.t.Context()), "", "git", "-C", p.root, "worktree", "remove", "--force", folder)
	})
	registry, _, _ := strings.Cut(p.images["refit-daemon"], "/")
	command := exec.CommandContext(p.t.Context(), filepath.Join(folder, "hack", "images.sh"))
	command.Env = append(os.Environ(), "IMAGE_REPO="+registry+"/previous", "TAG=previous")
	if out, err := command.CombinedOutput(); err != nil {
		p.t.Fatalf("build images of %s: %v\n%s", revision, err, out)
	}
	return folder
}

// Restarts that are under way when Refit is upgraded from an earlier version, and taken back to it, end well.
func TestUpgradeFromAnEarlierVersionAndBack(t *testing.T) {
	p := newPlace(t)
	revision := os.Getenv("REFIT_CHART_PREVIOUS")
	if revision == "" {
		t.Skip("set REFIT_CHART_PREVIOUS to the tag or commit of the earlier version")
	}
	earlier := p.checkout(revision)
	p.uninstallAtEnd()
	p.namespace()
	p.release("install", append([]string{p.pack(earlier), "--wait", "--create-namespace"}, p.valuesOf(earlier)...)...)
	p.workload()
	p.release("test")
	p.during("an upgrade from "+revision, func() { p.release("upgrade", append([]string{p.pack(p.root), "--wait"}, p.values...)...) })
	p.healthy()
	p.during("a rollback to "+revision, func() { p.run(p.helm, "rollback", "refit", "1", "--namespace="+namespace, "--wait", "--timeout=4m") })
	p.release("test")
}
