// Package lifecycle brings a cluster up, keeps track of what belongs to it and takes it down again. What the
// programs are told is in config, how processes are handled in process; the order of things is here.
package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/refit-project/refit/hack/images/oci"
	"github.com/refit-project/refit/test/cluster/apiserver"
	"github.com/refit-project/refit/test/cluster/build"
	"github.com/refit-project/refit/test/cluster/cgroup"
	"github.com/refit-project/refit/test/cluster/config"
	"github.com/refit-project/refit/test/cluster/programs"
	"github.com/refit-project/refit/test/cluster/progress"
	"github.com/refit-project/refit/test/cluster/state"
)

// Cluster is the cluster of one checkout.
type Cluster struct {
	state    state.Dir
	tree     cgroup.Tree
	settings settings
	report   *progress.Reporter
	out      io.Writer
}

// settings are what a running cluster was started with, kept in its state folder.
type settings struct {
	APIPort      int              `json:"apiPort"`
	RegistryPort int              `json:"registryPort"`
	Programs     programs.Folders `json:"programs"`
	Kubernetes   string           `json:"kubernetes"`
}

// version is the minor version of Kubernetes of a cluster for which wanted is asked. Without an answer it is the version of the
// cluster that is up, or the default. A cluster of two versions is refused.
func (s settings) version(wanted string, up bool) (string, error) {
	running := ""
	if up {
		running = s.Kubernetes
	}
	if running != "" && wanted != "" && wanted != running {
		return "", fmt.Errorf("the cluster that is up has Kubernetes %s, not %s: take it down first", running, wanted)
	}
	return cmp.Or(running, wanted, build.DefaultKubernetes), nil
}

// ErrNotUp is returned for a cluster that was never brought up.
var ErrNotUp = errors.New("no cluster here: bring one up first")

// Open returns the cluster of the checkout. Progress goes to out.
func Open(dir state.Dir, out io.Writer) (*Cluster, error) {
	tree, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	c := &Cluster{state: dir, tree: tree, report: progress.New(out), out: out}
	content, err := os.ReadFile(dir.Path("settings.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if err := json.Unmarshal(content, &c.settings); err != nil {
		// A run killed while it wrote them: as good as none, Up starts afresh.
		c.settings = settings{}
	}
	return c, nil
}

func (c *Cluster) saveSettings() error {
	content, err := json.MarshalIndent(c.settings, "", "  ")
	if err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	if err := state.WriteFile(c.state.Path("settings.json"), string(content)); err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	return nil
}

// exists says whether a cluster was brought up and not taken down.
func (c *Cluster) exists() bool { return c.settings.APIPort != 0 }

func (c *Cluster) controlPlane() config.ControlPlane {
	return config.ControlPlane{State: c.state, APIPort: c.settings.APIPort}
}

// starter is this program at a place that outlasts "go run".
func (c *Cluster) starter() string { return filepath.Join(c.settings.Programs.Cluster, "cluster") }

// kube is the program that is all of Kubernetes.
func (c *Cluster) kube() string { return filepath.Join(c.settings.Programs.Kube, "kube") }

func (c *Cluster) registry() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.settings.RegistryPort))
}

// lock keeps two of these programs from working on the same cluster. The returned function releases it.
func (c *Cluster) lock() (release func(), err error) {
	cache, err := state.CacheDir()
	if err != nil {
		return nil, err
	}
	return state.Lock(filepath.Join(cache, c.state.Name()+".lock"))
}

// choosePorts takes two free ports of the machine's loopback, starting at a place given by the cluster's
// name. They lie below both the range of node ports and the range of outgoing connections, so that neither can
// be in the way when a server comes back.
func (c *Cluster) choosePorts(ctx context.Context) error {
	const first, count = 20000, 9000
	seed, err := strconv.ParseUint(strings.TrimPrefix(c.state.Name(), state.NamePrefix), 16, 32)
	if err != nil {
		return fmt.Errorf("choose ports: %w", err)
	}
	var ports []int
	for i := range count {
		port := first + (int(seed%count)+i)%count
		var listen net.ListenConfig
		listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("choose ports: %w", err)
		}
		if ports = append(ports, port); len(ports) == 2 {
			c.settings.APIPort, c.settings.RegistryPort = ports[0], ports[1]
			return nil
		}
	}
	return errors.New("choose ports: none of 20000-28999 is free")
}

// nodeNumbers are the nodes the cluster has, and those up to count.
func (c *Cluster) nodeNumbers(count int) ([]int, error) {
	numbers, err := c.state.Nodes()
	if err != nil {
		return nil, err
	}
	for number := 1; number <= count; number++ {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

func (c *Cluster) connect() (*apiserver.Client, error) {
	return apiserver.Connect(c.state.Path("pki"), c.settings.APIPort)
}

// Load pushes an image archive to the cluster's registry and returns the names it has there.
func (c *Cluster) Load(ctx context.Context, archive string) ([]string, error) {
	if !c.exists() {
		return nil, ErrNotUp
	}
	return oci.Push(archive, c.registry(), remote.WithContext(ctx))
}
