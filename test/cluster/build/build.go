// Package build compiles the cluster's programs and keeps them between clusters, one folder per component,
// named after a hash of everything that goes into it. Two builders may work at once: the folder appears
// complete or not at all.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// DefaultKubernetes is the minor version of a cluster for which none is asked.
const DefaultKubernetes = "1.37"

// release is a version of Kubernetes that can be built.
type release struct {
	version string
	// modfile is the file beside components/kube's go.mod that has its dependencies, empty for go.mod itself.
	modfile string
}

var releases = map[string]release{
	"1.37": {version: "v1.37.2"},
	"1.36": {version: "v1.36.3", modfile: "go-1.36.mod"},
	"1.34": {version: "v1.34.9", modfile: "go-1.34.mod"},
	"1.31": {version: "v1.31.14", modfile: "go-1.31.mod"},
}

// Component is a set of programs built from one module.
type Component struct {
	Name string
	// dir is the module's folder and packages what is built there, each into a program that go names after the
	// package; names has other names for some.
	dir      string
	packages []string
	names    map[string]string
	// cpu is what it costs to build all of it, as measured on a 2.x GHz core: the estimate until the first packages
	// are built.
	cpu   time.Duration
	flags []string
	// sources are the files and folders the hash covers, relative to dir.
	sources []string
	// modfile is used in the place of go.mod, if it is not empty.
	modfile string
}

// Components are all that is built for a minor version of Kubernetes, given the folder of this module.
func Components(module, kubernetes string) ([]Component, error) {
	kube, known := releases[kubernetes]
	if !known {
		return nil, fmt.Errorf("kubernetes %s cannot be built, only %s", kubernetes, strings.Join(slices.Sorted(maps.Keys(releases)), ", "))
	}
	part := func(name string) string { return filepath.Join(module, "components", name) }
	version := "-X k8s.io/component-base/version.gitVersion=" + kube.version +
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=" + strings.TrimPrefix(kubernetes, "1.") +
		" -X k8s.io/component-base/version.gitTreeState=clean"
	const containerd = "github.com/containerd/containerd/v2/"
	return []Component{
		{
			Name: "cluster", dir: module,
			cpu:      time.Minute,
			packages: []string{"./cmd/cluster", "./cmd/pause"},
			flags:    []string{"-ldflags=-s -w"},
			sources:  []string{".", "../../hack/images"},
		},
		{
			Name: "etcd", dir: part("etcd"),
			packages: []string{"go.etcd.io/etcd/server/v3"},
			names:    map[string]string{"server": "etcd"},
			cpu:      110 * time.Second,
			flags:    []string{"-ldflags=-s -w"},
			sources:  []string{"."},
		},
		{
			Name: "containerd", dir: part("containerd"),
			cpu:      3 * time.Minute,
			packages: []string{containerd + "cmd/containerd", containerd + "cmd/containerd-shim-runc-v2", containerd + "cmd/ctr"},
			flags: []string{
				"-tags=no_btrfs",
				"-ldflags=-s -w -X " + containerd + "version.Version=v2.4.2",
			},
			sources: []string{"."},
		},
		{
			Name: "kube", dir: part("kube"),
			cpu:      12 * time.Minute,
			packages: []string{"./kube", "k8s.io/kubernetes/cmd/kubectl"},
			flags:    []string{"-ldflags=-s -w " + version},
			sources:  []string{"."},
			modfile:  kube.modfile,
		},
	}, nil
}

// Cached returns the folder of the component's programs below cache, and whether it is there already.
func (c Component) Cached(cache string) (dir string, cached bool, err error) {
	key, err := c.key()
	if err != nil {
		return "", false, fmt.Errorf("build %s: %w", c.Name, err)
	}
	dir = filepath.Join(cache, c.Name+"-"+key)
	_, err = os.Stat(dir)
	return dir, err == nil, nil
}

// Build compiles the component into dir, as Cached named it. What the compiler says goes to out when it fails.
func (c Component) Build(ctx context.Context, dir string, progress *Progress, out io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".build-")
	if err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	stale, err := c.Stale(ctx)
	if err != nil {
		return err
	}
	progress.begin(stale, c.cpu)
	// One go build for all packages: it compiles one program's while it links another. With -v it names each package.
	command := c.command(ctx, append([]string{"build", "-v", "-o", temporary + "/"}, c.flags...)...)
	said := &bytes.Buffer{}
	command.Stdout, command.Stderr = progress, io.MultiWriter(progress, said)
	if err := command.Run(); err != nil {
		_, writeErr := said.WriteTo(out)
		return fmt.Errorf("build %s: %w", c.Name, errors.Join(err, writeErr))
	}
	for given, name := range c.names {
		if err := os.Rename(filepath.Join(temporary, given), filepath.Join(temporary, name)); err != nil {
			return fmt.Errorf("build %s: %w", c.Name, err)
		}
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	err = os.Rename(temporary, dir)
	if errors.Is(err, fs.ErrExist) {
		// Somebody else was quicker and built the same.
		return nil
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	return nil
}

// Stale counts the packages that are to be compiled, the programs included. It downloads what modules are missing.
func (c Component) Stale(ctx context.Context) (int, error) {
	command := c.command(ctx, append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, c.flags...)...)
	said := &bytes.Buffer{}
	command.Stderr = said
	names, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("list packages of %s: %w: %s", c.Name, err, said)
	}
	return len(strings.Fields(string(names))), nil
}

func (c Component) command(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "-trimpath")
	if c.modfile != "" {
		args = append(args, "-modfile="+c.modfile)
	}
	command := exec.CommandContext(ctx, "go", append(args, c.packages...)...)
	command.Dir = c.dir
	// The programs run in namespaces of their own and in images without a libc: nothing dynamic. The compiler's garbage
	// collector runs less often: 9 % less CPU time for etcd.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOGC=400")
	return command
}

// key hashes names and contents of the sources, the flags and the compiler.
func (c Component) key() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH, c.packages, c.flags)
	for _, source := range c.sources {
		root := filepath.Join(c.dir, source)
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			// Other components are below this module and have a key of their own.
			if entry.IsDir() && relative == "components" {
				return filepath.SkipDir
			}
			if entry.IsDir() || !isSource(path) {
				return nil
			}
			return hashFile(sum, relative, path)
		})
		if err != nil {
			return "", err
		}
	}
	if c.modfile != "" {
		for _, name := range []string{c.modfile, strings.TrimSuffix(c.modfile, ".mod") + ".sum"} {
			if err := hashFile(sum, name, filepath.Join(c.dir, name)); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func isSource(path string) bool {
	name := filepath.Base(path)
	return name == "go.mod" || name == "go.sum" || (strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"))
}

func hashFile(sum io.Writer, name, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%s %d\n", name, len(content))
	_, err = sum.Write(content)
	return err
}
