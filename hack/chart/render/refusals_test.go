package render_test

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

// A Job cannot get another template, so an upgrade must not find it under the same name.
func TestAnotherImageMakesAnotherJob(t *testing.T) {
	t.Parallel()
	jobs := map[string]bool{}
	for _, values := range []string{"", "image: {tag: v2}", "manager: {nodeSelector: {a: b}}", "commonLabels: {team: a}", "image: {tag: v2}"} {
		jobs[jobOfCertificates(t, values)] = true
	}
	if len(jobs) != 4 {
		t.Errorf("Jobs %v, want four", jobs)
	}
}

// A webhook that an upgrade adds has no caBundle until the Job has run again.
func TestOtherWebhooksMakeAnotherJob(t *testing.T) {
	t.Parallel()
	all := jobOfCertificates(t, "")
	for _, feature := range []string{"restartRollouts: false", "podProbes: false", "serverlessProbes: none", "readinessGates: none", "sidecarSets: false"} {
		if jobOfCertificates(t, "manager: {features: {"+feature+"}}") == all {
			t.Errorf("%s: the same Job, so that the webhooks are without caBundle when the feature is turned on again", feature)
		}
	}
	if jobOfCertificates(t, "daemon: {podLabels: {a: b}}") != all {
		t.Error("the same webhooks make another Job")
	}
}

// jobOfCertificates returns the name of the Job that makes the certificates of the webhooks.
func jobOfCertificates(t *testing.T, values string) string {
	t.Helper()
	found, err := rendered(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for key := range found {
		if strings.HasPrefix(key, "Job/refit-certificates-") {
			return key
		}
	}
	t.Fatalf("no Job of certificates with the values %q", values)
	return ""
}

func TestRefusedValues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ values, want string }{
		"misspelt":                     {"daemon: {runtme: crio}", "runtme"},
		"unknown runtime":              {"daemon: {runtime: podman}", "runtime"},
		"unknown mode":                 {"openkruise: {mode: both}", "mode"},
		"no replicas":                  {"manager: {replicas: 0}", "replicas"},
		"not a digest":                 {"daemon: {image: {digest: abc}}", "digest"},
		"not an argument":              {"daemon: {extraArgs: [v=3]}", "extraArgs"},
		"existing without a Secret":    {"webhook: {certificates: {mode: existing}}", "secretName"},
		"existing without authority":   {"webhook: {certificates: {mode: existing, existing: {secretName: a}}}", "caBundle"},
		"existing, the chart's own":    {"webhook: {certificates: {mode: existing, existing: {secretName: refit-manager-webhook-cert, caBundle: QQ==}}}", "which Helm deletes"},
		"not a namespace":              {"sidecar: {namespaces: [Games]}", "namespaces"},
		"not a name of a namespace":    {"webhook: {excludedNamespaces: ['*']}", "excludedNamespaces"},
		"not a label":                  {"commonLabels: {team: 'a b'}", "commonLabels"},
		"a manager that does nothing":  {"openkruise: {mode: beside}\nmanager: {features: {restartRollouts: false, inPlaceUpdates: false}}", "manager.enabled"},
		"a port for two listeners":     {"manager: {ports: {health: 9443}}", "manager.ports: webhook, health and metrics have to be different ports"},
		"the port of the metrics":      {"manager: {ports: {metrics: 8081}}", "manager.ports"},
		"the name of refit-manager":    {"manager: {podLabels: {app.kubernetes.io/name: ours}}", "manager.podLabels: the label app.kubernetes.io/name is set by the chart"},
		"the name of refit-daemon":     {"daemon: {podLabels: {app.kubernetes.io/name: ours}}", "daemon.podLabels: the label"},
		"the name of all pods":         {"commonLabels: {app.kubernetes.io/name: ours}", "commonLabels: the label"},
		"a memory limit of Kubernetes": {"daemon: {goMemLimit: 100Mi}", "goMemLimit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := rendered(t, tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one about %s", err, tc.want)
			}
		})
	}
}

// Nothing listens on the port of metrics that are turned off.
func TestPortsThatAreNotUsedMayBeEqual(t *testing.T) {
	t.Parallel()
	if _, err := rendered(t, "manager: {metrics: false, ports: {metrics: 9443}}"); err != nil {
		t.Error(err)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	for _, values := range []map[string]any{{}, {"openkruise": map[string]any{"mode": "daemonOnly"}}} {
		for _, message := range lint.RunAll(chart, values, namespace).Messages {
			if message.Severity > support.InfoSev {
				t.Error(fmt.Sprint(message))
			}
		}
	}
}
