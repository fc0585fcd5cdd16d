// Command demo shows a container being restarted in place, from nothing: a real cluster, images, the manifests of
// deploy/, a pod, a request, and a timeline of what happened.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/refit-project/refit/build/install"
	"github.com/refit-project/refit/build/step"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// place is the cluster the demo runs on.
type place struct {
	root       string // of the checkout
	own        bool   // the checkout's own cluster, else the user's
	kubeconfig string
	kubectl    string
}

var errNoRepository = errors.New("with KUBECONFIG set, IMAGE_REPO has to name a registry and folder that this machine can push to " +
	"and the cluster can pull from, as registry.example.com/refit; without KUBECONFIG a cluster is made here")

func findPlace() (place, error) {
	root, err := os.Getwd()
	if err != nil {
		return place{}, err
	}
	if _, err := os.Stat(filepath.Join(root, "deploy", "crd")); err != nil {
		return place{}, fmt.Errorf("run it in the root of the checkout: %w", err)
	}
	state := filepath.Join(root, ".cluster")
	own := place{root: root, own: true, kubeconfig: filepath.Join(state, "kubeconfig"), kubectl: filepath.Join(state, "bin", "kubectl")}
	given := os.Getenv("KUBECONFIG")
	if given == "" || given == own.kubeconfig {
		return own, nil
	}
	if os.Getenv("IMAGE_REPO") == "" {
		return place{}, errNoRepository
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return place{}, fmt.Errorf("find kubectl: %w", err)
	}
	return place{root: root, kubeconfig: given, kubectl: kubectl}, nil
}

func run(ctx context.Context) error {
	where, err := findPlace()
	if err != nil {
		return err
	}
	report := step.New(os.Stdout, filepath.Join(where.root, "dist", "log"))
	if where.own {
		err := report.Run(ctx, "cluster up (the first time on a machine it is built: about 8 minutes)",
			step.Command{Argv: []string{"test/cluster/cluster.sh", "up"}, Echo: true})
		if err != nil {
			return err
		}
	}
	if err := os.Setenv("KUBECONFIG", where.kubeconfig); err != nil {
		return err
	}
	if err := report.Run(ctx, "images", step.Command{Argv: []string{"build/images.sh"}}); err != nil {
		return err
	}
	images, err := install.Pushed(where.root)
	if err != nil {
		return err
	}
	err = report.Do("installing the manifests of deploy/", func() error {
		return install.Apply(ctx, install.Config{Root: where.root, Kubectl: where.kubectl, Images: images})
	})
	if err != nil {
		return err
	}
	scene, err := openScene(where)
	if err != nil {
		return err
	}
	if err := report.Do("pod web of two containers, nginx and busybox", func() error { return scene.setUp(ctx) }); err != nil {
		return err
	}
	var story story
	err = report.Do("ContainerRecreateRequest restart-app", func() error {
		story, err = scene.restart(ctx)
		return err
	})
	if err != nil {
		return err
	}
	story.print(os.Stdout)
	fmt.Printf(next, where.kubeconfig, filepath.Dir(where.kubectl))
	if where.own {
		fmt.Println("  make cluster-down                                       # leaves nothing behind")
	}
	return nil
}

const next = `
The cluster stays up. Try next:

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl --namespace refit-demo get pod web                # RESTARTS has gone up by one, AGE and IP have not changed
  kubectl --namespace refit-demo describe crr restart-app   # conditions, container states, events
  kubectl --namespace refit-demo delete crr restart-app     # and again; kubelet's back-off does not apply:
  kubectl apply -f build/demo/request.yaml
  kubectl --namespace refit-demo wait --for=condition=Succeeded crr/restart-app
  kubectl --namespace refit-system logs daemonset/refit-daemon
`
