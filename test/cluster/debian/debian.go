// Package debian gets what the cluster takes from Debian's packages. What only the cluster uses is unpacked
// into the cache and never installed: a developer's machine keeps its own container runtime and web server.
package debian

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// layoutVersion changes when the folders that Unpack makes do.
const layoutVersion = "1"

// hostTools are the programs that must be on the machine and the package each is in.
var hostTools = []struct{ program, pkg string }{
	{"ip", "iproute2"},
	{"iptables-restore", "iptables"},
	{"mount", "mount"},
	{"dpkg-deb", "dpkg"},
	{"apt-get", "apt"},
}

// Missing are the packages of the host tools this machine does not have.
func Missing() []string {
	var missing []string
	for _, tool := range hostTools {
		if _, err := exec.LookPath(tool.program); err != nil {
			missing = append(missing, tool.pkg)
		}
	}
	return missing
}

// Install installs packages with apt-get.
func Install(ctx context.Context, packages []string) error {
	args := append([]string{"install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, packages...)
	if err := aptGet(ctx, "/", args...); err == nil {
		return nil
	}
	// The lists of packages may be missing or old.
	if err := update(ctx); err != nil {
		return err
	}
	return aptGet(ctx, "/", args...)
}

func update(ctx context.Context) error {
	return aptGet(ctx, "/", "update", "-q", "-o", "DPkg::Lock::Timeout=300")
}

func aptGet(ctx context.Context, dir string, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, bytes.TrimSpace(output))
	}
	return nil
}

// Tree is the content of some packages, and of the libraries they need when WithLibraries is set.
type Tree struct {
	Packages      []string
	WithLibraries bool
}

// Cached returns the folder of the tree below cache, and whether it is there already.
func (t Tree) Cached(cache string) (dir string, cached bool, err error) {
	// Missing on a system that is not Debian; apt-get will say so.
	release, err := os.ReadFile("/etc/os-release")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("unpack packages: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, layoutVersion, runtime.GOARCH, t.Packages, t.WithLibraries)
	sum.Write(release)
	dir = filepath.Join(cache, "debian-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	_, err = os.Stat(dir)
	return dir, err == nil, nil
}

// Unpack downloads the packages and unpacks them into dir, as Cached named it.
func (t Tree) Unpack(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".unpack-")
	if err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	files, tree := filepath.Join(temporary, "files"), filepath.Join(temporary, "tree")
	for _, dir := range []string{files, tree} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("unpack packages: %w", err)
		}
	}
	if err := t.download(ctx, files); err != nil {
		if err := update(ctx); err != nil {
			return err
		}
		if err := t.download(ctx, files); err != nil {
			return err
		}
	}
	if err := unpack(ctx, files, tree); err != nil {
		return err
	}
	if err := os.Rename(tree, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("unpack packages: %w", err)
	}
	return nil
}

func (t Tree) download(ctx context.Context, dir string) error {
	packages := t.Packages
	if t.WithLibraries {
		var err error
		if packages, err = withLibraries(ctx, packages); err != nil {
			return err
		}
	}
	// Without the sandbox user, who must stay out the cache folder of root.
	return aptGet(ctx, dir, append([]string{"download", "-q", "-o", "APT::Sandbox::User=root"}, packages...)...)
}

func unpack(ctx context.Context, files, tree string) error {
	archives, err := filepath.Glob(filepath.Join(files, "*.deb"))
	if err != nil {
		return fmt.Errorf("unpack packages: %w", err)
	}
	for _, archive := range archives {
		output, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", archive, tree).CombinedOutput()
		if err != nil {
			return fmt.Errorf("unpack %s: %w\n%s", filepath.Base(archive), err, bytes.TrimSpace(output))
		}
	}
	return nil
}

// withLibraries adds the libraries that the packages depend on, and those that these depend on.
func withLibraries(ctx context.Context, packages []string) ([]string, error) {
	all := slices.Clone(packages)
	for i := 0; i < len(all); i++ {
		output, err := exec.CommandContext(ctx, "apt-cache", "depends", "--important", all[i]).Output()
		if err != nil {
			return nil, fmt.Errorf("apt-cache depends %s: %w", all[i], err)
		}
		for _, library := range libraries(string(output)) {
			if !slices.Contains(all, library) {
				all = append(all, library)
			}
		}
	}
	return all, nil
}

// libraries picks the library packages from the output of "apt-cache depends".
func libraries(output string) []string {
	var found []string
	lines := bufio.NewScanner(strings.NewReader(output))
	for lines.Scan() {
		name, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "Depends: ")
		if ok && (strings.HasPrefix(name, "lib") || name == "zlib1g") {
			found = append(found, name)
		}
	}
	return found
}
