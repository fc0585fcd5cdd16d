// Command demo shows a container being restarted in place, from nothing: a real cluster, images, the manifests of
// deploy/, a pod, a request, and a timeline of what happened.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/refit-project/refit/hack/place"
	"github.com/refit-project/refit/hack/step"
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

func run(ctx context.Context) error {
	where, err := place.Find()
	if err != nil {
		return err
	}
	report := step.New(os.Stdout, filepath.Join(where.Root, "dist", "log"))
	if _, err := where.Prepare(ctx, report); err != nil {
		return err
	}
	demo, err := newDemo(where)
	if err != nil {
		return err
	}
	if err := report.Do("pod web of two containers, nginx and busybox", func() error { return demo.setUp(ctx) }); err != nil {
		return err
	}
	var timeline timeline
	err = report.Do("ContainerRecreateRequest restart-app", func() error {
		timeline, err = demo.restart(ctx)
		return err
	})
	if err != nil {
		return err
	}
	timeline.print(os.Stdout)
	fmt.Printf(next, where.Kubeconfig, filepath.Dir(where.Kubectl))
	if where.Own {
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
  kubectl apply -f hack/demo/request.yaml
  kubectl --namespace refit-demo wait --for=condition=Succeeded crr/restart-app
  kubectl --namespace refit-system logs daemonset/refit-daemon
`
