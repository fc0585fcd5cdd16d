// Package process is the configuration by which plugins select a process, and the adapter from there to the package signal.
//
// It contains: the configuration of a selector, and the search, with the names of containers looked up in the pod's status.
// What is done to a process must stay out.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/signal"
)

// Config of a selector. Every condition that is given must hold.
type Config struct {
	// ProcessName is a process title such as "nginx: master process nginx", whole or up to a space. If no title matches, it
	// is compared with the command line without the folder: "nginx" matches "/usr/sbin/nginx -g ..." then. It never matches
	// arguments.
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

// ErrNoStatus means that the pod's status does not name the running instance of a container.
var ErrNoStatus = errors.New("not in the pod's status")

// Validate returns all errors at once.
func (c Config) Validate() error {
	selector, err := c.selector(signal.Only)
	if err != nil {
		return err
	}
	if c.ContainerName != "" { // the instance is not known yet, but a container is a sufficient condition
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

// Finder finds the process selected by a configuration.
type Finder struct {
	Config Config
	FS     *signal.FS
	// Observed returns the last known pod, or nil.
	Observed func() *corev1.Pod
}

// Find returns the result of signal.FS.Find.
func (f Finder) Find(ctx context.Context) ([]signal.Process, error) {
	_, found, err := f.find(ctx, signal.Only)
	return found, err
}

// Count implements probe.Counter: it returns the number of processes.
func (f Finder) Count(ctx context.Context) (int, error) {
	_, found, err := f.find(ctx, signal.All)
	if errors.Is(err, signal.ErrNotFound) || errors.Is(err, ErrNoStatus) {
		return 0, nil
	}
	return len(found), err
}

// Signal sends sig to the process. It checks the process again when its PID can no longer be reused.
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
	if errors.Is(err, signal.ErrNotFound) && os.Getpid() == 1 { // with a shared namespace PID 1 is the sandbox
		err = fmt.Errorf("%w: %w", err, ErrNotShared)
	}
	return selector, found, err
}

// ContainerID returns the running instance of a container from the pod's status.
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
