// Command demo restarts a container in place on a real cluster, which it creates, and prints a timeline of what happened.
package main

import (
	"context"
	"os"

	"github.com/refit-project/refit/hack/demokit"
)

func main() { os.Exit(demokit.Program{Name: "demo", Show: show}.Main()) }

func show(ctx context.Context, kit *demokit.Demo) error {
	d, err := newDemo(kit)
	if err != nil {
		return err
	}
	if err := kit.Report.Do("pod web of two containers, nginx and busybox", func() error { return d.api.Recreate(ctx, d.pod) }); err != nil {
		return err
	}
	var recorded timeline
	err = kit.Report.Do("kubectl refit restart", func() error {
		recorded, err = d.restart(ctx)
		return err
	})
	if err != nil {
		return err
	}
	recorded.print(kit.Out)
	if err := d.refit(ctx, "why", "web", "--container=app"); err != nil {
		return err
	}
	kit.Next(next)
	return nil
}

const next = `
kubectl --namespace refit-demo get pod web                # RESTARTS has gone up by one, AGE and IP have not changed
kubectl refit restart pod/web -c app -n refit-demo        # and again; kubelet's back-off does not apply
kubectl refit status -n refit-demo                        # the requests; kubectl refit timeline crr/NAME -n refit-demo
kubectl --namespace refit-demo describe crr               # conditions, container states, events
kubectl refit doctor                                      # checks the installation; helm test refit --namespace refit-system does too
kubectl --namespace refit-system logs daemonset/refit-daemon
`
