// Package state knows the names and places of one checkout's cluster: its .cluster folder, the names
// derived from the checkout's path, and the addresses in its network. It holds no process and starts none.
package state

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

const module = "github.com/refit-project/refit"

// ErrNoCheckout is returned by Find outside a checkout.
var ErrNoCheckout = errors.New("not inside a checkout of " + module)

// Dir is the state folder of the cluster of one checkout.
type Dir struct {
	checkout string
}

// New returns the state of the checkout in that folder, which must be an absolute path.
func New(checkout string) Dir { return Dir{checkout: filepath.Clean(checkout)} }

// Find walks up from start to the root of the checkout it lies in.
func Find(start string) (Dir, error) {
	dir, err := filepath.Abs(start)
	if err != nil {
		return Dir{}, fmt.Errorf("find checkout: %w", err)
	}
	for {
		if moduleOf(filepath.Join(dir, "go.mod")) == module {
			// Names are derived from the path, so every way of writing it must give the same one.
			resolved, err := filepath.EvalSymlinks(dir)
			if err != nil {
				return Dir{}, fmt.Errorf("find checkout: %w", err)
			}
			return New(resolved), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return Dir{}, fmt.Errorf("%s: %w", start, ErrNoCheckout)
		}
		dir = parent
	}
}

func moduleOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// Checkout is the root of the checkout.
func (d Dir) Checkout() string { return d.checkout }

// Name is the cluster's name on this machine: it differs between checkouts and names the cgroups.
func (d Dir) Name() string {
	sum := sha256.Sum256([]byte(d.checkout))
	return NamePrefix + hex.EncodeToString(sum[:4])
}

// NamePrefix starts the name of every checkout's cluster.
const NamePrefix = "refit-"

// Path is a path in the state folder.
func (d Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.checkout, ".cluster"}, elem...)...)
}

// Log is the log file of a component; node is empty for the control plane's.
func (d Dir) Log(component, node string) string {
	if node == "" {
		return d.Path("logs", component+".log")
	}
	return d.Path("logs", node, component+".log")
}

// Node is the folder of one node.
func (d Dir) Node(name string, elem ...string) string {
	return d.Path(append([]string{"nodes", name}, elem...)...)
}

// Nodes are the numbers of the nodes the state folder has, in ascending order.
func (d Dir) Nodes() ([]int, error) {
	entries, err := os.ReadDir(d.Path("nodes"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var numbers []int
	for _, entry := range entries {
		if number, err := NodeNumber(entry.Name()); err == nil {
			numbers = append(numbers, number)
		}
	}
	sort.Ints(numbers)
	return numbers, nil
}

// CacheDir is where built programs and unpacked packages are kept between clusters and checkouts:
// $XDG_CACHE_HOME/refit/cluster.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	return filepath.Join(dir, "refit", "cluster"), nil
}
