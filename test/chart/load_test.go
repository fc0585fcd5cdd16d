package chart_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

// Ten pods, restarted one at a time, each after it has drained for ten seconds.
const (
	replicas     = 10
	drainSeconds = 10
)

// store is a Deployment with a readiness gate, so that its pods can be taken out of their Service, and a preStop hook that has the
// server close the connections that clients keep.
const store = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: store, namespace: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      readinessGates: [{conditionType: KruisePodReady}]
      containers:
      - name: app
        image: %[3]s
        args: ["--http=:8080"]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {httpGet: {path: "/prestop?sleep=1s", port: 8080}}}
---
apiVersion: v1
kind: Service
metadata: {name: store, namespace: %[1]s}
spec:
  selector: {app: store}
  ports: [{port: 80, targetPort: 8080}]
`

// clients send requests to an address of the Service, which kube-proxy gives to a ready pod for each connection. Nothing is tried again.
const clients = `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  nodeName: %s
  restartPolicy: %s
  containers:
  - {name: load, image: %s, args: ["--address=%s:80", "--rate=200", "--limit=%s"]}
`

// client starts one, always on the same node.
func (p *place) client(name, restartPolicy string, limit time.Duration) {
	p.t.Helper()
	node := p.ofShop("get", "pods", "--selector=app=store", "--output=jsonpath={.items[0].spec.nodeName}")
	address := p.ofShop("get", "service/store", "--output=jsonpath={.spec.clusterIP}")
	p.apply(fmt.Sprintf(clients, name, shop, node, restartPolicy, p.images["hotupgrade-load"], address, limit))
}

// The pods of a Deployment are restarted while clients send requests to their Service, and kubectl-refit knows who has done it.
func TestRestartsUnderLoadWithoutAFailedRequest(t *testing.T) {
	p := newPlace(t)
	if os.Getenv("REFIT_CHART_LOAD") == "" {
		t.Skip("takes 4 minutes: set REFIT_CHART_LOAD=1")
	}
	p.uninstallAtEnd()
	p.namespace()
	p.release("install", append([]string{p.pack(p.root), "--wait", "--create-namespace", "--set=crds.keep=false"}, p.values...)...)
	p.apply(fmt.Sprintf(store, shop, replicas, p.images["testapp"]))
	p.run(p.kubectl, "rollout", "status", "deployment/store", "--namespace="+shop, "--timeout=3m")
	p.client("try", "OnFailure", 2*time.Second) // until the node's kube-proxy knows the Service
	p.ofShop("wait", "pod/try", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=2m")
	p.client("load", "Never", 10*time.Minute)
	p.ofShop("wait", "pod/load", "--for=condition=Ready", "--timeout=1m")
	const uids = "--output=jsonpath={.items[*].metadata.uid}"
	before := p.ofShop("get", "pods", "--selector=app=store", uids)

	began := time.Now()
	out := p.run(p.refit, "restart", "deployment/store", "-o", "name", "-c", "app", "--max-unavailable", "1", "--wait", "--namespace="+shop,
		fmt.Sprintf("--drain-seconds=%d", drainSeconds), "--reason=stale connections", "--timeout=6m")
	p.t.Logf("%d pods restarted in %.1f s:\n%s", replicas, time.Since(began).Seconds(), out)

	if counts := p.ofShop("get", "pods", "--selector=app=store", "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}"); counts != strings.TrimSpace(strings.Repeat("1 ", replicas)) {
		p.t.Errorf("restarts of the %d pods: %s, want one of each", replicas, counts)
	}
	if after := p.ofShop("get", "pods", "--selector=app=store", uids); after != before {
		p.t.Errorf("pods %s before and %s after", before, after)
	}
	p.noneFailed(regexp.MustCompile(`restartrollout\.refit\.dev/\S+`).FindString(out))
	p.namesRequester(strings.Fields(p.ofShop("get", "pods", "--selector=app=store", "--output=name"))[0])
}

// noneFailed ends the load and counts. If requests have failed, the timeline of the rollout tells which pod was stopped then.
func (p *place) noneFailed(rollout string) {
	p.t.Helper()
	p.ofShop("exec", "load", "--", "/load", "stop")
	p.ofShop("wait", "pod/load", "--for=jsonpath={.status.containerStatuses[0].state.terminated}", "--timeout=1m")
	intervals, total, err := traffic.Read(strings.NewReader(p.ofShop("logs", "load")))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Logf("%d requests, slowest %.1f ms, on %d kept connections and %d others", total.Requests(), total.Slowest, total.Kept, total.Opened)
	for _, i := range intervals {
		for _, failure := range i.Failures {
			p.t.Errorf("failed at %s", failure)
		}
	}
	if total.Failed > 0 || total.Refused > 0 || total.Requests() < 1000 {
		p.t.Errorf("of %d requests %d failed, %d were refused: %s\n%s", total.Requests(), total.Failed, total.Refused, total.Error, p.run(p.refit, "timeline", rollout, "--namespace="+shop))
	}
}

// namesRequester asks why a pod was restarted, and when.
func (p *place) namesRequester(pod string) {
	p.t.Helper()
	user := p.run(p.kubectl, "auth", "whoami", "--output=jsonpath={.status.userInfo.username}")
	why := p.run(p.refit, "why", pod, "-c", "app", "--namespace="+shop)
	if !strings.Contains(why, "requested by "+user+": stale connections") {
		p.t.Errorf("kubectl refit why does not name %s:\n%s", user, why)
	}
	_, request, _ := strings.Cut(why, "ContainerRecreateRequest ")
	name, _, _ := strings.Cut(request, " ")
	if out := p.run(p.refit, "timeline", "crr/"+name, "--namespace="+shop); !strings.Contains(out, "pod made not ready") || !strings.Contains(out, "completed") {
		p.t.Errorf("timeline:\n%s", out)
	}
}

// ofShop runs kubectl in the namespace of the pods.
func (p *place) ofShop(args ...string) string {
	p.t.Helper()
	return p.run(p.kubectl, append([]string{"--namespace=" + shop}, args...)...)
}

func (p *place) apply(manifest string) {
	p.t.Helper()
	p.runWith(p.t.Context(), manifest, p.kubectl, "apply", "--filename=-")
}
