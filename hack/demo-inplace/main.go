// Command demo-inplace gives a running pod a new image and other resources in place, on a real cluster, which it creates, and
// prints for how long the pod is not ready and does not answer, beside a pod that is deleted and created with the same change.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/hack/demokit"
)

func main() { os.Exit(demokit.Program{Name: "demo-inplace", Show: show}.Main()) }

func show(ctx context.Context, kit *demokit.Demo) error {
	f, err := newFixture(kit, filepath.Join(kit.Programs(), "kubectl-refit"))
	if err != nil {
		return err
	}
	if err := kit.Report.Do("pods web and web-recreated, each of nginx and busybox", func() error { return f.setUp(ctx) }); err != nil {
		return err
	}
	if err := f.compare(ctx); err != nil {
		return err
	}
	kit.Next(next)
	return nil
}

const next = `
kubectl refit set image pod/web app=docker.io/library/nginx:1.22 --namespace=refit-inplace-demo --dry-run
kubectl refit set resources pod/web -c app --limits=memory=1Gi --namespace=refit-inplace-demo
kubectl --namespace refit-inplace-demo get pod web                # RESTARTS counts, AGE and IP stay
`
