package render_test

import "testing"

// Who may call the webhooks.
func TestCallersOfTheWebhooks(t *testing.T) {
	t.Parallel()
	const (
		args = "Deployment/refit-manager {.spec.template.spec.containers[0].args}"
		role = "default/Role/refit-manager {.rules[*].resources} {.rules[*].resourceNames} {.rules[*].verbs}"
	)
	for name, tc := range map[string]struct {
		values string
		want   map[string]string
	}{
		"defaults": {want: map[string]string{
			role: `["endpointslices"] ["kubernetes"] ["get"]`, "default/RoleBinding/refit-manager {.subjects[0].namespace}": namespace, args: `["--metrics-addr=:8080"]`,
		}},
		"pods of other namespaces": {
			values: "webhook: {callers: {allowedNamespaces: [kube-system, konnectivity]}}",
			want:   map[string]string{args: `["--metrics-addr=:8080","--webhook-allowed-namespaces=kube-system,konnectivity"]`},
		},
		"no pods": {
			values: "webhook: {callers: {allowedNamespaces: []}}",
			want:   map[string]string{args: `["--metrics-addr=:8080","--webhook-allowed-namespaces="]`},
		},
		"all pods": {
			values: "webhook: {callers: {refusePods: false}}",
			want:   map[string]string{args: `["--metrics-addr=:8080","--webhook-refuse-pods=false"]`, role: "no default/Role/refit-manager"},
		},
		"a client certificate": {
			values: "webhook: {callers: {clientCA: {configMapName: api-server, key: authority.pem}}}",
			want: map[string]string{
				args: `["--metrics-addr=:8080","--webhook-client-ca-file=/etc/refit/client-ca/authority.pem"]`,
				"Deployment/refit-manager {.spec.template.spec.volumes[0].configMap.name} {.spec.template.spec.containers[0].volumeMounts[0].mountPath}": "api-server /etc/refit/client-ca",
			},
		},
		"no webhooks": {
			values: "manager: {features: {containerRecreateRequests: false, restartRollouts: false, sidecarSets: false, serverlessProbes: none}}\npolicies: {hold: none}",
			want:   map[string]string{role: "no default/Role/refit-manager"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := rendered(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			for where, want := range tc.want {
				if got := found.at(t, where); got != want {
					t.Errorf("%s: %s\nwant %s", where, got, want)
				}
			}
		})
	}
}

// The creation of a pod in an excluded namespace calls no webhook, and is not refused for the lack of a sidecar. What others ask for there
// is reviewed all the same.
func TestExcludedNamespaces(t *testing.T) {
	t.Parallel()
	const values = `["kube-system","repairs","123","payments"]`
	const selector, names = ".namespaceSelector.matchExpressions[0].values}", "MutatingWebhookConfiguration/refit-manager"
	expects(t, "webhook: {excludedNamespaces: ['123', payments]}", map[string]string{
		names + ` {.webhooks[?(@.name=="mpodreadinessgate.refit.dev")]` + selector:               values,
		names + ` {.webhooks[?(@.name=="mpodprobe.refit.dev")]` + selector:                       values,
		names + `-sidecarsets {.webhooks[?(@.name=="mpod.kb.io")]` + selector:                    values,
		"ValidatingAdmissionPolicy/refit-sidecarset-required {.spec.matchConstraints" + selector: values,
		"Deployment/refit-manager {.spec.template.spec.containers[0].args}":                      `["--metrics-addr=:8080","--webhook-excluded-namespaces=123,payments"]`,
		names + ` {.webhooks[?(@.name=="mcontainerrecreaterequest.kb.io")].namespaceSelector}`:   "",
		names + ` {.webhooks[?(@.name=="mrestartrollout.refit.dev")].namespaceSelector}`:         "",
		names + ` {.webhooks[?(@.name=="mrestartschedule.refit.dev")].namespaceSelector}`:        "",
	})
}
