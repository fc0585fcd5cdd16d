package chart_test

import (
	"fmt"
	"strings"
	"time"
)

// vault is a Deployment whose container is restarted when its Secret has changed.
const vault = `
apiVersion: v1
kind: Secret
metadata: {name: vault, namespace: %[1]s}
stringData: {token: first}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: vault
  namespace: %[1]s
  annotations: {refit.dev/restart-on-config-change: app}
spec:
  selector: {matchLabels: {app: vault}}
  template:
    metadata: {labels: {app: vault}}
    spec:
      containers:
      - name: app
        image: %[2]s
        args: ["--http=:8080"]
        envFrom: [{secretRef: {name: vault}}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
`

// mayReadSecrets reports whether refit-manager may read the Secrets of the test's namespace.
func (p *place) mayReadSecrets() bool {
	p.t.Helper()
	// The exit code says the same as the answer.
	out, _ := output(p.t.Context(), "", p.kubectl, "auth", "can-i", "list", "secrets", "--namespace="+shop, "--as=system:serviceaccount:"+namespace+":refit-manager")
	switch answer := strings.TrimSpace(out); answer {
	case "yes", "no":
		return answer == "yes"
	default:
		p.t.Fatalf("kubectl auth can-i: %s", out)
		return false
	}
}

// restartsOnSecretChange changes a Secret, for which the container that uses it is restarted once.
func (p *place) restartsOnSecretChange() {
	p.t.Helper()
	p.apply(fmt.Sprintf(vault, shop, p.images["testapp"]))
	p.run(p.kubectl, "rollout", "status", "deployment/vault", "--namespace="+shop, "--timeout=2m")
	const known = "--output=jsonpath={.status.objects[*].kind}/{.status.objects[*].name}"
	p.await("RestartTrigger knows the Secret", func() bool {
		out, err := output(p.t.Context(), "", p.kubectl, "get", "restarttrigger/deployment-vault", "--namespace="+shop, known)
		return err == nil && out == "Secret/vault"
	})
	p.run(p.kubectl, "patch", "secret/vault", "--namespace="+shop, "--type=merge", `--patch={"stringData":{"token":"second"}}`)
	const of = `--output=jsonpath={.items[?(@.metadata.annotations.refit\.dev/trigger=="Secret/vault")].status.conditions[?(@.type=="Succeeded")].status}`
	p.await("RestartRollout for the Secret succeeds", func() bool {
		return p.run(p.kubectl, "get", "restartrollouts", "--namespace="+shop, of) == "True"
	})
	restarts := p.run(p.kubectl, "get", "pods", "--namespace="+shop, "--selector=app=vault", "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if restarts != "1" {
		p.t.Errorf("restarts of the container that uses the Secret: %q, want 1", restarts)
	}
	if out := p.run(p.refit, "status", "--namespace="+shop, "--output=wide"); !strings.Contains(out, "restarttrigger/deployment-vault") || !strings.Contains(out, "Secret/vault") {
		p.t.Errorf("kubectl refit status does not show the trigger:\n%s", out)
	}
}

// await looks again until done, for a minute.
func (p *place) await(what string, done func() bool) {
	p.t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !done(); <-tick.C {
		if time.Now().After(deadline) {
			p.t.Fatalf("not within a minute: %s", what)
		}
	}
}
