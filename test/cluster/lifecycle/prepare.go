package lifecycle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote"

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
	for _, component := range build.Components(module) {
		dir, cached, err := component.Cached(cache)
		if err != nil {
			return programs{}, err
		}
		*found.folder(component.Name) = dir
		if cached {
			continue
		}
		name := "building " + component.Name
		if component.Name == "kube" {
			name += " (the first time takes about 5 minutes)"
		}
		if err := c.report.Step(name, func() error { return component.Build(ctx, dir, c.out) }); err != nil {
			return programs{}, err
		}
	}
	for name, tree := range map[string]debian.Tree{"tools": tools, "nginx": nginx} {
		dir, cached, err := tree.Cached(cache)
		if err != nil {
			return programs{}, err
		}
		*found.folder(name) = dir
		if cached {
			continue
		}
		step := "unpacking " + strings.Join(tree.Packages, ", ")
		if err := c.report.Step(step, func() error { return tree.Unpack(ctx, dir) }); err != nil {
			return programs{}, err
		}
	}
	return found, nil
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
