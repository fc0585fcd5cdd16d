// Command demo-sidecarset shows what a SidecarSet does with pods: sidecars are injected, updated in place in ten pods with
// partition and pause, and upgraded hot under load, beside the same server that is upgraded by a restart.
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
		fmt.Fprintln(os.Stderr, "demo-sidecarset:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	where, err := place.Find()
	if err != nil {
		return err
	}
	report := step.New(os.Stdout, filepath.Join(where.Root, "dist", "log"))
	config, err := where.Prepare(ctx, report, "--hot-upgrade")
	if err != nil {
		return err
	}
	d, err := newDemo(where, config.Images, os.Stdout)
	if err != nil {
		return err
	}
	if err := report.Do("ten pods of a Deployment, with the sidecar that a SidecarSet injects", func() error { return d.inject(ctx) }); err != nil {
		return err
	}
	if err := d.rollOut(ctx); err != nil {
		return err
	}
	var hot, cold *recording
	err = report.Do("a server that is upgraded hot twice under load", func() error {
		hot, err = d.upgrade(ctx, true)
		return err
	})
	if err != nil {
		return err
	}
	err = report.Do("the same server, upgraded twice by a restart of its container", func() error {
		cold, err = d.upgrade(ctx, false)
		return err
	})
	if err != nil {
		return err
	}
	if err := d.compare(hot, cold); err != nil {
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
  kubectl get sidecarsets
  kubectl patch sidecarset refit-demo-log --type=json -p='[{"op":"replace","path":"/spec/containers/0/image","value":"docker.io/library/busybox:1.36"}]'
  kubectl get sidecarset refit-demo-log --watch
  kubectl --namespace refit-sidecarset-demo get pods             # RESTARTS of the sidecar count, AGE and IP stay
  kubectl get events --field-selector involvedObject.kind=SidecarSet
`
