package chart_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// collector is a pod that accepts traces over OTLP/gRPC and prints their spans.
const collector = `
apiVersion: v1
kind: Pod
metadata: {name: collector, namespace: %[1]s, labels: {app: collector}}
spec:
  containers:
  - name: app
    image: %[2]s
    args: ["--otlp=:4317"]
    readinessProbe: {tcpSocket: {port: 4317}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: collector, namespace: %[1]s}
spec:
  selector: {app: collector}
  ports: [{port: 4317}]
`

// collects starts the collector and returns its address.
func (p *place) collects() string {
	p.t.Helper()
	p.apply(fmt.Sprintf(collector, shop, p.images["testapp"]))
	p.ofShop("wait", "pod/collector", "--for=condition=Ready", "--timeout=2m")
	return p.ofShop("get", "service/collector", "--output=jsonpath={.spec.clusterIP}") + ":4317"
}

// span is what testapp prints of one.
type span struct {
	Service    string
	Name       string
	TraceID    string `json:"trace_id"`
	ID         string
	Parent     string
	Start, End time.Time
	Error      string
	Attributes map[string]string
}

// traced restarts a container and checks that the collector gets one trace, from the admission of the request until the container is
// ready, with the calls of the container runtime.
func (p *place) traced() {
	p.t.Helper()
	pod := strings.Fields(p.ofShop("get", "pods", "--selector=app=web", "--output=name"))[0]
	began := time.Now()
	p.run(p.refit, "restart", pod, "--container=app", "--namespace="+shop, "--timeout=2m")
	spans := p.trace(strings.TrimPrefix(pod, "pod/"))
	p.t.Logf("%s restarted, and its trace of %d spans collected, in %.1f s", pod, len(spans), time.Since(began).Seconds())

	byName := map[string]span{}
	for _, s := range spans {
		byName[s.Name] = s
	}
	admission := byName["admission"]
	if admission.Service != "refit-manager" || admission.Parent != "" {
		p.t.Errorf("the trace begins with %+v, want the admission by refit-manager", admission)
	}
	for _, name := range []string{"plan", "stop", "start", "ready", "request"} {
		if s := byName[name]; s.Service != "refit-daemon" || s.Parent != admission.ID || s.Error != "" {
			p.t.Errorf("span %s: %+v, want it of refit-daemon, below the admission, without an error", name, s)
		}
	}
	stop, start, ready := byName["stop"], byName["start"], byName["ready"]
	if stop.Start.Before(admission.Start) || start.Start.Before(stop.End) || ready.Start.Before(start.End) {
		p.t.Errorf("admission at %s, stop %s to %s, start %s to %s, ready from %s", admission.Start, stop.Start, stop.End, start.Start, start.End, ready.Start)
	}
	if call := byName["runtime.v1.RuntimeService/StopContainer"]; call.Parent != stop.ID {
		p.t.Errorf("the call of the container runtime %+v is not below the stop %+v", call, stop)
	}
}

// trace waits for the trace of the request for a pod: programs send what they have recorded every five seconds.
func (p *place) trace(pod string) []span {
	p.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		all := p.spans()
		isOf := func(name string) func(span) bool {
			return func(s span) bool { return s.Name == name && s.Attributes["k8s.pod.name"] == pod }
		}
		first := slices.IndexFunc(all, isOf("admission"))
		if first >= 0 && slices.ContainsFunc(all, isOf("request")) {
			return slices.DeleteFunc(all, func(s span) bool { return s.TraceID != all[first].TraceID })
		}
		select {
		case <-deadline.C:
			p.t.Fatalf("no trace of the restart of %s, spans: %+v", pod, all)
		case <-tick.C:
		}
	}
}

// spans are all that the collector has got.
func (p *place) spans() []span {
	p.t.Helper()
	var all []span
	for decoder := json.NewDecoder(strings.NewReader(p.ofShop("logs", "collector"))); decoder.More(); {
		var line struct{ Span *span }
		if err := decoder.Decode(&line); err != nil {
			p.t.Fatalf("read spans: %v", err)
		}
		if line.Span != nil {
			all = append(all, *line.Span)
		}
	}
	return all
}
