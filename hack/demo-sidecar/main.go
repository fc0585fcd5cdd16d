// Command demo-sidecar shows refit-sidecar in a pod with nginx on a real cluster, which it creates: updates that nginx accepts
// and refuses, a probe, and restores after containers and the pod were lost.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/refit-project/refit/hack/demokit"
)

func main() { os.Exit(demokit.Program{Name: "demo-sidecar", Show: show}.Main()) }

func show(ctx context.Context, kit *demokit.Demo) error {
	d, err := newDemo(kit)
	if err != nil {
		return err
	}
	defer d.close()
	err = kit.Report.Do("pod web-0 of nginx and refit-sidecar, a pod to download from, a GameServer", func() error { return d.setUp(ctx) })
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
		transcript := newTranscript(kit.Out, step.title)
		if err := step.run(ctx, transcript); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	kit.Next(fmt.Sprintf(next, d.source("v2/default.conf")))
	return nil
}

const next = `
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
