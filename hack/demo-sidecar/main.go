// Command demo-sidecar shows the sidecar in a pod, from nothing: a real cluster, images, the manifests of deploy/, a
// pod of nginx and refit-sidecar, and what becomes of good and bad updates, of probes, and of lost containers.
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
		fmt.Fprintln(os.Stderr, "demo-sidecar:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	where, err := place.Find()
	if err != nil {
		return err
	}
	report := step.New(os.Stdout, filepath.Join(where.Root, "dist", "log"))
	deploy, err := where.Prepare(ctx, report)
	if err != nil {
		return err
	}
	d, err := newDemo(where, deploy)
	if err != nil {
		return err
	}
	defer d.close()
	err = report.Do("pod web-0 of nginx and refit-sidecar, a pod to download from, a GameServer", func() error { return d.setUp(ctx) })
	if err != nil {
		return err
	}
	for _, step := range []struct {
		title string
		run   func(context.Context, *transcript) error
	}{
		{"An update by HTTP, then SIGHUP to 'nginx: master process nginx'", d.update},
		{"An update that nginx refuses", d.badUpdate},
		{"A probe sets labels of the pod and a field of its GameServer", d.probe},
		{"The container of nginx is killed, then the sidecar's", d.loseContainers},
		{"The pod is deleted, with its volume", d.losePod},
	} {
		transcript := newTranscript(os.Stdout, step.title)
		if err := step.run(ctx, transcript); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	fmt.Printf(next, where.Kubeconfig, filepath.Dir(where.Kubectl), d.source("v2/default.conf"))
	if where.Own {
		fmt.Println("  make cluster-down                                # leaves nothing behind")
	}
	return nil
}

const next = `
The cluster stays up. Try next:

  export KUBECONFIG=%s PATH=%s:$PATH
  alias k='kubectl --namespace refit-sidecar-demo'
  k port-forward pod/web-0 5000 8080:80 &
  TOKEN=$(k get secret refit-sidecar-token -o jsonpath='{.data.token}' | base64 -d)
  curl -H "Authorization: Bearer $TOKEN" -d version=v2 -d url=%s http://127.0.0.1:5000/hot-update
  curl http://127.0.0.1:8080/                      # this is v2
  curl -H "Authorization: Bearer $TOKEN" -X POST http://127.0.0.1:5000/rollback
  curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:5000/status
  k describe pod web-0                             # conditions, annotations, events
  k get configmap sidecar-result -o yaml           # what the workload has accepted
`
