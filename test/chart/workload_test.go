package chart_test

import (
	"context"
	"fmt"
	"sync"
)

// namespace creates the namespace of the pods that are restarted, and removes it when the test has ended.
func (p *place) namespace() {
	p.t.Helper()
	p.run(p.kubectl, "create", "namespace", shop)
	p.t.Cleanup(func() {
		_, _ = output(context.WithoutCancel(p.t.Context()), "", p.kubectl, "delete", "namespace", shop, "--timeout=2m")
	})
}

// workload makes a Deployment whose pods are restarted.
func (p *place) workload() {
	p.t.Helper()
	p.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: %s
        args: ["--http=:8080"]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
`, shop, pods, p.images["testapp"]))
	p.run(p.kubectl, "rollout", "status", "deployment/web", "--namespace="+shop, "--timeout=2m")
}

// admitsOthers creates pods that Refit has nothing to do with, without storing them, until the returned function is called. That
// fails the test if one was refused.
func (p *place) admitsOthers() (end func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	create := func() (string, error) {
		return output(ctx, "", p.kubectl, "run", "other", "--image=example.com/other", "--namespace="+shop, "--dry-run=server")
	}
	p.await("the first pod, which needs the namespace's ServiceAccount", func() bool { _, err := create(); return err == nil })
	refused, created := "", 0
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil && refused == "" {
			if out, err := create(); err != nil && ctx.Err() == nil {
				refused = out
			}
			created++
		}
	})
	return func() {
		p.t.Helper()
		cancel()
		work.Wait()
		if refused != "" || created < 2 {
			p.t.Errorf("a pod that no SidecarSet selects was refused, after %d: %s", created-1, refused)
		}
	}
}

// restarts counts the restarts of the containers of all pods.
func (p *place) restarts() string {
	p.t.Helper()
	return p.run(p.kubectl, "get", "pods", "--namespace="+shop, "--selector=app=web", "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}")
}
