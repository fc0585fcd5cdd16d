package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/hack/images/oci"
	"github.com/refit-project/refit/test/cluster/baseimage"
	"github.com/refit-project/refit/test/cluster/build"
	"github.com/refit-project/refit/test/cluster/debian"
	"github.com/refit-project/refit/test/cluster/state"
)

var (
	tools = debian.Tree{Packages: []string{"runc", "containernetworking-plugins", "busybox-static"}}
	nginx = debian.Tree{Packages: []string{"nginx", "nginx-common"}, WithLibraries: true}
)

// prepare gets every program the cluster is made of.
func (c *Cluster) prepare(ctx context.Context, module string) (programs, error) {
	if missing := debian.Missing(); len(missing) > 0 {
		err := c.report.Step("installing "+strings.Join(missing, ", "), func() error { return debian.Install(ctx, missing) })
		if err != nil {
			return programs{}, err
		}
	}
	cache, err := state.CacheDir()
	if err != nil {
		return programs{}, err
	}
	var found programs
	var missing []missingComponent
	for _, component := range build.Components(module) {
		dir, cached, err := component.Cached(cache)
		if err != nil {
			return programs{}, err
		}
		*found.folder(component.Name) = dir
		if !cached {
			missing = append(missing, missingComponent{Component: component, dir: dir})
		}
	}
	trees := map[string]debian.Tree{}
	for name, tree := range map[string]debian.Tree{"tools": tools, "nginx": nginx} {
		dir, cached, err := tree.Cached(cache)
		if err != nil {
			return programs{}, err
		}
		*found.folder(name) = dir
		if !cached {
			trees[dir] = tree
		}
	}
	return found, c.make(ctx, missing, trees)
}

// make builds and unpacks what is missing. What the network has to bring comes while the compiler is busy.
func (c *Cluster) make(ctx context.Context, missing []missingComponent, trees map[string]debian.Tree) error {
	downloads, downloading := errgroup.WithContext(ctx)
	for _, component := range missing {
		downloads.Go(func() error { _, err := component.Stale(downloading); return err })
	}
	downloads.Go(func() error { // one after the other: apt-get locks its lists
		for dir, tree := range trees {
			if err := tree.Unpack(downloading, dir); err != nil {
				return err
			}
		}
		return nil
	})
	if err := c.buildMissing(ctx, missing); err != nil {
		return errors.Join(err, downloads.Wait())
	}
	if len(trees) == 0 {
		return downloads.Wait()
	}
	return c.report.Step("unpacking Debian packages", downloads.Wait)
}

type missingComponent struct {
	build.Component
	dir string
}

func (c *Cluster) buildMissing(ctx context.Context, missing []missingComponent) error {
	for i, component := range missing {
		progress := &build.Progress{Cores: runtime.GOMAXPROCS(0)}
		name := fmt.Sprintf("building %s (%d of %d)", component.Name, i+1, len(missing))
		build := func() error { return component.Build(ctx, component.dir, progress, c.out) }
		if err := c.report.StepWithStatus(name, progress.Status, build); err != nil {
			return err
		}
	}
	return nil
}

func (p *programs) folder(component string) *string {
	switch component {
	case "cluster":
		return &p.Cluster
	case "kube":
		return &p.Kube
	case "etcd":
		return &p.Etcd
	case "containerd":
		return &p.Containerd
	case "tools":
		return &p.Tools
	case "nginx":
		return &p.Nginx
	}
	panic("no folder for component " + component)
}

// pushImages fills the registry with what every cluster has. What it holds already is not sent again.
func (c *Cluster) pushImages(ctx context.Context) error {
	busybox, err := firstFile(c.settings.Programs.Tools, "usr/bin/busybox", "bin/busybox")
	if err != nil {
		return err
	}
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	images, err := baseimage.Build(baseimage.Sources{
		Busybox:  busybox,
		Applets:  slices.Collect(strings.FieldsSeq(string(applets))),
		Nginx:    c.settings.Programs.Nginx,
		Pause:    filepath.Join(c.settings.Programs.Cluster, "pause"),
		Platform: "linux/" + runtime.GOARCH,
	})
	if err != nil {
		return err
	}
	for _, image := range images {
		target, err := oci.Target(image.Name, c.registry())
		if err != nil {
			return fmt.Errorf("push %s: %w", image.Name, err)
		}
		if err := remote.Write(target, image.Image, remote.WithContext(ctx)); err != nil {
			return fmt.Errorf("push %s: %w", target, err)
		}
	}
	return nil
}

// Load pushes an image archive to the cluster's registry and returns the names it has there.
func (c *Cluster) Load(ctx context.Context, archive string) ([]string, error) {
	if !c.exists() {
		return nil, ErrNotUp
	}
	return oci.Push(archive, c.registry(), remote.WithContext(ctx))
}

func firstFile(root string, candidates ...string) (string, error) {
	for _, candidate := range candidates {
		path := filepath.Join(root, candidate)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("none of %s in %s", strings.Join(candidates, ", "), root)
}
