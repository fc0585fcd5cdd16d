package chart_test

import (
	"context"
	"fmt"
)

// namespace makes that of the pods that are restarted, and removes it when the test has ended.
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

// restarts counts those of the containers of all pods.
func (p *place) restarts() string {
	p.t.Helper()
	return p.run(p.kubectl, "get", "pods", "--namespace="+shop, "--selector=app=web", "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}")
}
