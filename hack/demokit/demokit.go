// Package demokit is what the demos have in common: the program around a demo, which prepares a cluster with Refit on it,
// and the creation of namespaces and pods. What a demo shows must stay out.
package demokit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/refit-project/refit/hack/democluster"
	"github.com/refit-project/refit/hack/install"
	"github.com/refit-project/refit/hack/step"
)

// Program is one demo.
type Program struct {
	Name string
	// OwnCluster means that the demo reads from the nodes of the checkout's cluster and cannot run on another one.
	OwnCluster bool
	// Images are arguments of hack/images.sh, for images beside the images of Refit.
	Images []string
	// Show runs when Refit is installed on the cluster.
	Show func(context.Context, *Demo) error
}

// Demo is what a demo is given.
type Demo struct {
	democluster.Cluster
	Deploy install.Config // installs further manifests of deploy/
	Report *step.Reporter
	Out    io.Writer
}

// Main runs the program until it ends or is interrupted, prints the error and returns the exit code.
func (p Program) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

func (p Program) run(ctx context.Context) error {
	found, err := democluster.Find()
	if err != nil {
		return err
	}
	if p.OwnCluster && !found.Own {
		return errors.New("unset KUBECONFIG: times are read from the container runtime of the test cluster")
	}
	report := step.New(os.Stdout, filepath.Join(found.Root, "dist", "log"))
	deploy, err := found.Prepare(ctx, report, p.Images...)
	if err != nil {
		return err
	}
	return p.Show(ctx, &Demo{Cluster: found, Deploy: deploy, Report: report, Out: os.Stdout})
}

// Next prints commands that the user may run now, one per line.
func (d *Demo) Next(commands string) {
	fmt.Fprintf(d.Out, "\nThe cluster is still running. Try next:\n\n  export KUBECONFIG=%s PATH=%s:%s:$PATH\n", d.Kubeconfig, filepath.Dir(d.Kubectl), d.Programs())
	for line := range strings.Lines(strings.TrimSpace(commands) + "\n") {
		fmt.Fprint(d.Out, "  ", line)
	}
	if d.Own {
		fmt.Fprintln(d.Out, "  make cluster-down                                       # removes the cluster and all that belongs to it")
	}
}

// RunKubectl runs kubectl with input on its standard input, and returns its standard output. The error holds what it wrote
// to standard error.
func (d *Demo) RunKubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, d.Kubectl, args...)
	command.Stdin = strings.NewReader(input)
	out, err := command.Output()
	if err != nil {
		text := ""
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			text = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("kubectl %s: %w%s", strings.Join(args, " "), err, text)
	}
	return string(out), nil
}

// Image returns the full name of an image that has been pushed.
func (d *Demo) Image(name string) (string, error) {
	i := slices.IndexFunc(d.Deploy.Images, func(image string) bool { return strings.Contains(image, "/"+name+":") })
	if i < 0 {
		return "", fmt.Errorf("the image %s has not been pushed", name)
	}
	return d.Deploy.Images[i], nil
}
