// Package programs gets the programs that a cluster is made of: it builds them or takes them from Debian, keeps
// them in the cache of the machine, and makes the images that every cluster has.
package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/test/cluster/build"
	"github.com/refit-project/refit/test/cluster/debian"
	"github.com/refit-project/refit/test/cluster/progress"
	"github.com/refit-project/refit/test/cluster/state"
)

// Folders are the folders the cluster's programs are in.
type Folders struct {
	Cluster    string `json:"cluster"`
	Kube       string `json:"kube"`
	Etcd       string `json:"etcd"`
	Containerd string `json:"containerd"`
	Tools      string `json:"tools"`
	Nginx      string `json:"nginx"`
}

var (
	tools = debian.Tree{Packages: []string{"runc", "containernetworking-plugins", "busybox-static"}}
	nginx = debian.Tree{Packages: []string{"nginx", "nginx-common"}, WithLibraries: true}
)

// Sources are what the programs are built from.
type Sources struct {
	// Module is the folder of the sources of test/cluster.
	Module string
	// Kubernetes is the minor version, such as "1.36". Of a cluster that is brought up it may be empty: the version that it has.
	Kubernetes string
}

// Get returns the folders of the programs when all of them are there.
func Get(ctx context.Context, sources Sources, report *progress.Reporter, out io.Writer) (Folders, error) {
	if missing := debian.Missing(); len(missing) > 0 {
		err := report.Step("installing "+strings.Join(missing, ", "), func() error { return debian.Install(ctx, missing) })
		if err != nil {
			return Folders{}, err
		}
	}
	cache, err := state.CacheDir()
	if err != nil {
		return Folders{}, err
	}
	components, err := build.Components(sources.Module, sources.Kubernetes)
	if err != nil {
		return Folders{}, err
	}
	var found Folders
	var missing []missingComponent
	for _, component := range components {
		dir, cached, err := component.Cached(cache)
		if err != nil {
			return Folders{}, err
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
			return Folders{}, err
		}
		*found.folder(name) = dir
		if !cached {
			trees[dir] = tree
		}
	}
	return found, provide(ctx, missing, trees, report, out)
}

// provide builds and unpacks what is missing. What the network has to bring comes while the compiler is busy.
func provide(ctx context.Context, missing []missingComponent, trees map[string]debian.Tree, report *progress.Reporter, out io.Writer) error {
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
	if err := buildMissing(ctx, missing, report, out); err != nil {
		return errors.Join(err, downloads.Wait())
	}
	if len(trees) == 0 {
		return downloads.Wait()
	}
	return report.Step("unpacking Debian packages", downloads.Wait)
}

type missingComponent struct {
	build.Component
	dir string
}

func buildMissing(ctx context.Context, missing []missingComponent, report *progress.Reporter, out io.Writer) error {
	for i, component := range missing {
		progressed := &build.Progress{Cores: runtime.GOMAXPROCS(0)}
		name := fmt.Sprintf("building %s (%d of %d)", component.Name, i+1, len(missing))
		build := func() error { return component.Build(ctx, component.dir, progressed, out) }
		if err := report.StepWithStatus(name, progressed.Status, build); err != nil {
			return err
		}
	}
	return nil
}

func (p *Folders) folder(component string) *string {
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
