// Command demo-inplace shows a running pod that gets a new image and other resources in place, and how long it serves
// nothing meanwhile, beside a pod that is deleted and made anew for the same change.
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
		fmt.Fprintln(os.Stderr, "demo-inplace:", err)
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
	tool := filepath.Join(where.Root, "dist", "bin", "kubectl-refit")
	if err := report.Run(ctx, "kubectl-refit", step.Command{Argv: []string{"go", "build", "-o", tool, "./cmd/kubectl-refit"}}); err != nil {
		return err
	}
	s, err := openScene(where, tool)
	if err != nil {
		return err
	}
	if err := report.Do("pods web and web-anew, each of nginx and busybox", func() error { return s.setUp(ctx) }); err != nil {
		return err
	}
	if err := s.play(ctx, os.Stdout); err != nil {
		return err
	}
	fmt.Printf(next, where.Kubeconfig, filepath.Dir(where.Kubectl), filepath.Dir(tool))
	if where.Own {
		fmt.Println("  make cluster-down                                       # leaves nothing behind")
	}
	return nil
}

const next = `
The cluster stays up. Try next:

  export KUBECONFIG=%s PATH=%s:%s:$PATH
  kubectl refit set image pod/web app=docker.io/library/nginx:1.22 --namespace=refit-inplace-demo --dry-run
  kubectl refit set resources pod/web -c app --limits=memory=1Gi --namespace=refit-inplace-demo
  kubectl --namespace refit-inplace-demo get pod web                # RESTARTS counts, AGE and IP stay
`
