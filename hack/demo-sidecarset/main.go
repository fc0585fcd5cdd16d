// Command demo-sidecarset shows what a SidecarSet does with pods: sidecars are injected, updated in place in ten pods with
// partition and pause, and upgraded hot under load, beside the same server that is upgraded by a restart.
package main

import (
	"context"
	"os"

	"github.com/refit-project/refit/hack/demokit"
)

func main() {
	os.Exit(demokit.Program{Name: "demo-sidecarset", Images: []string{"--hot-upgrade"}, Show: show}.Main())
}

func show(ctx context.Context, on *demokit.Demo) error {
	d, err := newDemo(on)
	if err != nil {
		return err
	}
	if err := d.Report.Do("ten pods of a Deployment, with the sidecar that a SidecarSet injects", func() error { return d.inject(ctx) }); err != nil {
		return err
	}
	if err := d.rollOut(ctx); err != nil {
		return err
	}
	var hot, cold *recording
	err = d.Report.Do("a server that is upgraded hot twice under load", func() error {
		hot, err = d.upgrade(ctx, true)
		return err
	})
	if err != nil {
		return err
	}
	err = d.Report.Do("the same server, upgraded twice by a restart of its container", func() error {
		cold, err = d.upgrade(ctx, false)
		return err
	})
	if err != nil {
		return err
	}
	if err := d.compare(hot, cold); err != nil {
		return err
	}
	d.Next(next)
	return nil
}

const next = `
kubectl get sidecarsets
kubectl patch sidecarset refit-demo-log --type=json -p='[{"op":"replace","path":"/spec/containers/0/image","value":"docker.io/library/busybox:1.36"}]'
kubectl get sidecarset refit-demo-log --watch
kubectl --namespace refit-sidecarset-demo get pods             # RESTARTS of the sidecar count, AGE and IP stay
kubectl get events --field-selector involvedObject.kind=SidecarSet
`
