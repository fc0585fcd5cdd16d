// Command demo-workload gives a Deployment of ten pods another image and more CPU in place, under load, beside the same Deployment
// that is rolled out by its controller. Then it gives it an image that does not exist, which is undone.
package main

import (
	"context"
	"os"

	"github.com/refit-project/refit/hack/demokit"
)

func main() {
	images := []string{"--extra", "hotupgrade-load=examples/hotupgrade/load"}
	os.Exit(demokit.Program{Name: "demo-workload", Images: images, Show: show}.Main())
}

func show(ctx context.Context, on *demokit.Demo) error {
	d, err := newDemo(on)
	if err != nil {
		return err
	}
	if err := d.Report.Do("Deployments web and native of ten pods each, and an InPlaceUpdatePolicy for web", func() error { return d.setUp(ctx) }); err != nil {
		return err
	}
	d.explain()
	inPlace, err := d.measure(ctx, "web", func() error { return d.change(ctx, "web", goodChange, "True Completed") })
	if err != nil {
		return err
	}
	native, err := d.measure(ctx, "native", func() error { return d.rollOut(ctx) })
	if err != nil {
		return err
	}
	if err := d.compare(inPlace, native); err != nil {
		return err
	}
	undone, err := d.measure(ctx, "web", func() error { return d.change(ctx, "web", badChange, "True Completed") })
	if err != nil {
		return err
	}
	if err := d.undone(undone); err != nil {
		return err
	}
	d.Next(next)
	return nil
}

const next = `
kubectl config set-context --current --namespace=refit-workload-demo
kubectl set image deployment/web app=docker.io/library/nginx:1.22
kubectl get inplaceupdatepolicy web --watch
kubectl get pods --selector=app=web -o wide                    # RESTARTS counts, AGE and IP stay
kubectl rollout history deployment/web
kubectl describe inplaceupdatepolicy web
`
