// Command demo-probe shows a pod marked by what its game server says of itself, from nothing: a real cluster, images,
// the manifests of deploy/, a pod, a PodProbeMarker, and how long the marks take to follow.
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
		fmt.Fprintln(os.Stderr, "demo-probe:", err)
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
	d, err := newDemo(where)
	if err != nil {
		return err
	}
	if err := report.Do("pod game-0, a game server that is idle", func() error { return d.setUp(ctx) }); err != nil {
		return err
	}
	if err := d.play(ctx, os.Stdout); err != nil {
		return err
	}
	fmt.Printf(next, where.Kubeconfig, filepath.Dir(where.Kubectl))
	if where.Own {
		fmt.Println("  make cluster-down                                       # leaves nothing behind")
	}
	return nil
}

const next = `
The cluster stays up. Try next:

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl apply -f hack/demo-probe/marker.yaml
  kubectl --namespace refit-probe-demo wait --for=condition=game.example.com/idle pod/game-0
  kubectl --namespace refit-probe-demo exec game-0 -- sh -c 'echo allocated > /tmp/state'
  kubectl --namespace refit-probe-demo get pods --label-columns=game.example.com/state
  kubectl --namespace refit-probe-demo describe podprobemarker game
  kubectl get nodepodprobes --output=yaml                 # what the daemon of each node probes, and what it has found
  kubectl --namespace refit-probe-demo get events
`
