// Package process is how plugins say in their configuration which process they mean, and the bridge from there to
// the room signal.
//
// It contains: the configuration of a selector, and the search, with the names of containers looked up in the
// pod's status. What is done to a process must stay out.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/signal"
)

// Config of a selector. Every condition that is given must hold.
type Config struct {
	// ProcessName is the KEP's: a process title such as "nginx: master process nginx", whole or up to a space. Where no
	// title is like that, the folder of the program is left out: "nginx" is "/usr/sbin/nginx -g ..." then. It is never
	// looked for among arguments, as in the reference implementation, for those may be of another program.
	ProcessName    string `yaml:"processName"`
	Comm           string `yaml:"comm"`
	Cmdline        string `yaml:"cmdline"`
	CmdlinePrefix  string `yaml:"cmdlinePrefix"`
	CmdlineRegexp  string `yaml:"cmdlineRegexp"`
	Executable     string `yaml:"executable"`
	UID            *int   `yaml:"uid"`
	ContainerName  string `yaml:"containerName"`
	WhichOfSeveral string `yaml:"choose" enum:"only,oldest,newest,parent,all"`
}

// ErrNotShared means that processes of other containers can never be found: the pod does not share its PID namespace.
var ErrNotShared = errors.New("the pod does not share its PID namespace, set shareProcessNamespace")

// ErrNoStatus means that the pod's status does not say which instance of a container runs.
var ErrNoStatus = errors.New("not in the pod's status")

// Validate reports all faults at once.
func (c Config) Validate() error {
	selector, err := c.selector(signal.Only)
	if err != nil {
		return err
	}
	if c.ContainerName != "" { // not known yet which instance, but then a container is condition enough
		selector.Container = identity.ContainerID{Runtime: "any", ID: "any"}
	}
	return selector.Validate()
}

func (c Config) selector(otherwise signal.Choice) (signal.Selector, error) {
	choice := otherwise
	if c.WhichOfSeveral != "" {
		var err error
		if choice, err = signal.ParseChoice(c.WhichOfSeveral); err != nil {
			return signal.Selector{}, fmt.Errorf("choose: %w", err)
		}
	}
	return signal.Selector{
		Title: c.ProcessName, Comm: c.Comm, Cmdline: c.Cmdline, CmdlinePrefix: c.CmdlinePrefix,
		CmdlineRegexp: c.CmdlineRegexp, Exe: c.Executable, UID: c.UID, Choice: choice,
	}, nil
}

// Finder finds the process that a configuration means.
type Finder struct {
	Config Config
	FS     *signal.FS
	// Observed is the pod as it was last seen, or nil.
	Observed func() *corev1.Pod
}

// Find returns what signal.FS.Find does.
func (f Finder) Find(ctx context.Context) ([]signal.Process, error) {
	_, found, err := f.find(ctx, signal.Only)
	return found, err
}

// Count implements probe.Counter: how many there are.
func (f Finder) Count(ctx context.Context) (int, error) {
	_, found, err := f.find(ctx, signal.All)
	if errors.Is(err, signal.ErrNotFound) || errors.Is(err, ErrNoStatus) {
		return 0, nil
	}
	return len(found), err
}

// Signal sends sig to the process, compared again when it can no longer change.
func (f Finder) Signal(ctx context.Context, sig syscall.Signal) ([]signal.Process, error) {
	selector, _, err := f.find(ctx, signal.Only)
	if err != nil {
		return nil, err
	}
	return f.FS.Signal(ctx, selector, sig)
}

func (f Finder) find(ctx context.Context, otherwise signal.Choice) (signal.Selector, []signal.Process, error) {
	selector, err := f.Config.selector(otherwise)
	if err != nil {
		return selector, nil, err
	}
	if f.Config.ContainerName != "" {
		if selector.Container, err = ContainerID(f.Observed(), f.Config.ContainerName); err != nil {
			return selector, nil, err
		}
	}
	found, err := f.FS.Find(ctx, selector)
	if errors.Is(err, signal.ErrNotFound) && selector.Title != "" {
		selector.Program, selector.Title = selector.Title, ""
		found, err = f.FS.Find(ctx, selector)
	}
	if errors.Is(err, signal.ErrNotFound) && os.Getpid() == 1 { // with a shared namespace the sandbox has that number
		err = fmt.Errorf("%w: %w", err, ErrNotShared)
	}
	return selector, found, err
}

// ContainerID is the instance of a container that the pod's status names.
func ContainerID(pod *corev1.Pod, name string) (identity.ContainerID, error) {
	if pod == nil {
		return identity.ContainerID{}, fmt.Errorf("container %s: %w, which cannot be read", name, ErrNoStatus)
	}
	status := kubelet.StatusOf(pod, name)
	if status == nil || status.ContainerID == "" {
		return identity.ContainerID{}, fmt.Errorf("container %s: %w", name, ErrNoStatus)
	}
	id, err := identity.ParseContainerID(status.ContainerID)
	if err != nil {
		return id, fmt.Errorf("container %s: %w", name, err)
	}
	return id, nil
}
