// Command demo-probe labels a pod from the state that its application reports, on a real cluster, which it creates: a pod, a
// PodProbeMarker, and how long the pod's label, condition and annotation take to follow a change of the state.
package main

import (
	"context"
	"os"

	"github.com/refit-project/refit/hack/demokit"
)

func main() { os.Exit(demokit.Program{Name: "demo-probe", Show: show}.Main()) }

func show(ctx context.Context, kit *demokit.Demo) error {
	d, err := newDemo(kit)
	if err != nil {
		return err
	}
	if err := kit.Report.Do("pod game-0, a game server that is idle", func() error { return d.api.Recreate(ctx, d.pod, d.marker.DeepCopy()) }); err != nil {
		return err
	}
	if err := d.changeStates(ctx); err != nil {
		return err
	}
	kit.Next(next)
	return nil
}

const next = `
kubectl apply -f hack/demo-probe/marker.yaml
kubectl --namespace refit-probe-demo wait --for=condition=game.example.com/idle pod/game-0
kubectl --namespace refit-probe-demo exec game-0 -- sh -c 'echo allocated > /tmp/state'
kubectl --namespace refit-probe-demo get pods --label-columns=game.example.com/state
kubectl --namespace refit-probe-demo describe podprobemarker game
kubectl get nodepodprobes --output=yaml                 # what the daemon of each node probes, and the results
kubectl --namespace refit-probe-demo get events
`
