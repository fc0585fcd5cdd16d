package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/test/cluster/state"
)

func TestFind(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(root, "test", "cluster")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(below, "go.mod"), "module github.com/refit-project/refit/test/cluster\n")
	if _, err := state.Find(below); !errors.Is(err, state.ErrNoCheckout) {
		t.Errorf("outside a checkout: %v, want ErrNoCheckout", err)
	}
	write(filepath.Join(root, "go.mod"), "// A comment.\nmodule github.com/refit-project/refit\n")
	dir, err := state.Find(below)
	if err != nil {
		t.Fatal(err)
	}
	if dir.Checkout() != root {
		t.Errorf("checkout = %s, want %s", dir.Checkout(), root)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	linked, err := state.Find(link)
	if err != nil {
		t.Fatal(err)
	}
	if linked.Name() != dir.Name() {
		t.Errorf("a link to the checkout has another name: %s, %s", linked.Name(), dir.Name())
	}
	if state.New("/a").Name() == state.New("/b").Name() {
		t.Error("two checkouts share a name")
	}
}

func TestNodeNumber(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"node-1": 1, "node-200": 200, "node-0": 0, "node-201": 0, "node-01": 0, "node-": 0, "": 0, "kind-1": 0, "node-+1": 0} {
		got, err := state.NodeNumber(name)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("NodeNumber(%q) = %d, %v; want %d", name, got, err, want)
		}
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	dir := state.New(t.TempDir())
	for _, node := range []string{"node-10", "node-2", "other"} {
		if err := os.MkdirAll(dir.Node(node), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	numbers, err := dir.Nodes()
	if err != nil || len(numbers) != 2 || numbers[0] != 2 || numbers[1] != 10 {
		t.Errorf("nodes = %v, %v; want 2 and 10", numbers, err)
	}
}
