package render_test

import (
	"strings"
	"testing"
)

const (
	daemon  = "DaemonSet/refit-daemon {.spec.template.spec"
	manager = "Deployment/refit-manager {.spec.template.spec"
	webhook = "MutatingWebhookConfiguration/refit-manager"
)

func TestValues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values string
		want   map[string]string
		absent []string
	}{
		"defaults": {
			want: map[string]string{
				daemon + ".containers[0].image}":                                                                                     "ghcr.io/refit-project/refit-daemon:v0.1.0",
				daemon + ".containers[0].args}":                                                                                      `["--addr=:10221","--metrics-addr=:10223"]`,
				daemon + ".volumes[0].hostPath.path}":                                                                                "/run/containerd",
				daemon + ".containers[0].volumeMounts[0].mountPath}":                                                                 "/hostvarrun/containerd",
				manager + ".containers[0].image}":                                                                                    "ghcr.io/refit-project/refit-manager:v0.1.0",
				manager + ".containers[0].args}":                                                                                     `["--metrics-addr=:8080"]`,
				"Deployment/refit-manager {.spec.replicas}":                                                                          "2",
				"PodDisruptionBudget/refit-manager {.spec.minAvailable}":                                                             "1",
				webhook + " {.webhooks[*].name}":                                                                                     "mcontainerrecreaterequest.kb.io mpodreadinessgate.refit.dev mpodprobe.refit.dev mrestartrollout.refit.dev mrestartschedule.refit.dev",
				webhook + " {.webhooks[1].namespaceSelector.matchExpressions[1]}":                                                    `{"key":"refit.dev/readiness-gate","operator":"In","values":["enabled"]}`,
				webhook + " {.webhooks[0].clientConfig.service.namespace}":                                                           namespace,
				"CronJob/refit-certificates {.spec.schedule}":                                                                        "17 3 * * 1",
				"ClusterRole/refit-certificates {.rules[0].resourceNames}":                                                           `["refit-manager","refit-manager-sidecarsets","refit-manager-workloads"]`,
				"Namespace/kruise-daemon-config {.metadata.annotations.helm\\.sh/resource-policy}":                                   "keep",
				"kruise-daemon-config/Role/refit-daemon {.kind}":                                                                     "Role",
				"ClusterRoleBinding/refit-daemon {.subjects[0].namespace}":                                                           namespace,
				"ClusterRole/refit-imagepulljob-editor {.metadata.labels.rbac\\.authorization\\.k8s\\.io/aggregate-to-edit}":         "true",
				"CustomResourceDefinition/sidecarsets.apps.kruise.io {.metadata.annotations.helm\\.sh/resource-policy}":              "keep",
				"MutatingWebhookConfiguration/refit-manager-sidecarsets {.webhooks[1].namespaceSelector.matchExpressions[0].values}": `["kube-system","repairs"]`,
			},
			absent: []string{"Namespace/" + namespace, "NetworkPolicy/refit-manager", "Certificate/refit-manager-webhook", "ServiceAccount/refit-sidecar", "ValidatingAdmissionPolicy/refit-sidecar-pods"},
		},
		"a schedule that means something in YAML": {
			values: "webhook: {certificates: {self: {schedule: '*/30 * * * *'}}}",
			want:   map[string]string{"CronJob/refit-certificates {.spec.schedule}": "*/30 * * * *"},
		},
		"traces": {
			values: "tracing: {endpoint: 'collector.observability:4317', samplingRatePerMillion: 10000}",
			want: map[string]string{
				daemon + ".containers[0].args}":  `["--addr=:10221","--metrics-addr=:10223","--tracing-endpoint=collector.observability:4317"]`,
				manager + ".containers[0].args}": `["--metrics-addr=:8080","--tracing-endpoint=collector.observability:4317","--tracing-sampling-rate=10000"]`,
			},
		},
		"in place of kruise-daemon": {
			values: "openkruise: {mode: daemonOnly}",
			want:   map[string]string{daemon + ".serviceAccountName}": "refit-daemon", "ValidatingAdmissionPolicy/refit-daemon-pods {.kind}": "ValidatingAdmissionPolicy", "kruise-daemon-config/RoleBinding/refit-daemon {.kind}": "RoleBinding"},
			absent: []string{
				"Deployment/refit-manager", webhook, "MutatingWebhookConfiguration/refit-manager-sidecarsets", "Namespace/kruise-daemon-config", "kruise-daemon-config/Role/refit-manager",
				"CustomResourceDefinition/sidecarsets.apps.kruise.io", "CustomResourceDefinition/restartrollouts.refit.dev", "CronJob/refit-certificates", "ClusterRole/refit-manager", "Service/refit-manager-webhook",
			},
		},
		"beside kruise-manager": {
			values: "openkruise: {mode: beside}",
			want: map[string]string{
				manager + ".containers[0].args}":                                                       `["--metrics-addr=:8080","--container-recreate-requests=false","--pod-probes=false","--images=false","--sidecar-sets=false","--sidecarset-rollout=false"]`,
				webhook + " {.webhooks[*].name}":                                                       "mrestartrollout.refit.dev mrestartschedule.refit.dev",
				"CustomResourceDefinition/restartrollouts.refit.dev {.spec.group}":                     "refit.dev",
				"CronJob/refit-certificates {.spec.jobTemplate.spec.template.spec.containers[0].args}": `["certificates","--webhook-configurations=refit-manager,refit-manager-workloads"]`,
				"ClusterRole/refit-certificates {.rules[0].resourceNames}":                             `["refit-manager","refit-manager-workloads"]`,
				"kruise-daemon-config/Role/refit-manager {.rules[0].resources}":                        `["secrets"]`,
				"ValidatingAdmissionPolicy/refit-manager-requests {.spec.paramKind.kind}":              "ClusterRoleBinding",
			},
			absent: []string{"CustomResourceDefinition/sidecarsets.apps.kruise.io", "MutatingWebhookConfiguration/refit-manager-sidecarsets", "Namespace/kruise-daemon-config", "ValidatingAdmissionPolicy/refit-podprobemarker"},
		},
		"a feature that kruise-manager does not have": {
			values: "openkruise: {mode: beside}\nmanager: {features: {containerRecreateRequests: true}}",
			want:   map[string]string{webhook + " {.webhooks[*].name}": "mcontainerrecreaterequest.kb.io mpodreadinessgate.refit.dev mrestartrollout.refit.dev mrestartschedule.refit.dev"},
		},
		"readiness gates for all pods": {
			values: "manager: {features: {readinessGates: all}}",
			want:   map[string]string{webhook + ` {.webhooks[?(@.name=="mpodreadinessgate.refit.dev")].namespaceSelector.matchExpressions[1]}`: `{"key":"refit.dev/readiness-gate","operator":"NotIn","values":["disabled"]}`},
		},
		"requests and restarts are left to others": {
			values: "manager: {features: {containerRecreateRequests: false, restartRollouts: false}}",
			want: map[string]string{
				"ClusterRole/refit-manager {.rules[?(@.resources[0]==\"containerrecreaterequests\")].verbs}": `["get","list","watch","patch","delete"]`,
				"ClusterRole/refit-manager {.rules[?(@.resources[0]==\"pods\")].verbs}":                      `["get","list","watch"]`,
			},
		},
		"no readiness gates": {
			values: "manager: {features: {readinessGates: none}}",
			want:   map[string]string{webhook + " {.webhooks[1].name}": "mpodprobe.refit.dev", manager + ".containers[0].args}": `["--metrics-addr=:8080","--readiness-gates=false"]`},
		},
		"ConfigMaps and Secrets": {
			values: "manager: {features: {secretChanges: true}}",
			want: map[string]string{
				manager + ".containers[0].args}":                                 `["--metrics-addr=:8080","--restart-on-secret-change"]`,
				"ClusterRole/refit-manager-config-changes {.rules[0].resources}": `["configmaps","secrets"]`,
			},
		},
		"ConfigMaps alone": {
			want: map[string]string{"ClusterRole/refit-manager-config-changes {.rules[0].resources}": `["configmaps"]`},
		},
		"no restarts on changed ConfigMaps": {
			values: "manager: {features: {configChanges: false, secretChanges: true}}",
			want:   map[string]string{manager + ".containers[0].args}": `["--metrics-addr=:8080","--restart-on-config-change=false"]`},
			absent: []string{"ClusterRole/refit-manager-config-changes"},
		},
		"without SidecarSets": {
			values: "manager: {features: {sidecarSets: false}}",
			want:   map[string]string{manager + ".containers[0].args}": `["--metrics-addr=:8080","--sidecar-sets=false","--sidecarset-rollout=false"]`},
			absent: []string{"MutatingWebhookConfiguration/refit-manager-sidecarsets", "ClusterRole/refit-manager-sidecarset-rollout", "ValidatingAdmissionPolicy/refit-sidecarset-required"},
		},
		"without probes and restarts of workloads": {
			values: "manager: {features: {podProbes: false, restartRollouts: false}}",
			want: map[string]string{
				"ClusterRole/refit-manager {.rules[?(@.resources[0]==\"containerrecreaterequests\")].verbs}":        `["get","list","watch","create","patch","delete"]`,
				"ClusterRole/refit-manager {.rules[?(@.resources[0]==\"nodepodprobes\")].verbs}":                    "",
				"ClusterRole/refit-manager {.rules[?(@.resources[0]==\"podprobemarkers\")].verbs}":                  "",
				"ValidatingAdmissionPolicy/refit-manager-pods {.spec.variables[?(@.name==\"allowed\")].expression}": `'^(app[.]kubernetes[.]io|game[.]kruise[.]io)/|^(controller[.]kubernetes[.]io/pod-deletion-cost|cluster-autoscaler[.]kubernetes[.]io/safe-to-evict|descheduler[.]alpha[.]kubernetes[.]io/evict|apps[.]kruise[.]io/specified-delete|refit[.]dev/podprobe-overridden|refit[.]dev/config-refresh)$'`,
			},
			absent: []string{"ValidatingAdmissionPolicy/refit-podprobemarker"},
		},
		"CRI-O": {
			values: "daemon: {runtime: crio}",
			want:   map[string]string{daemon + ".volumes[0].hostPath.path}": "/run/crio", daemon + ".containers[0].volumeMounts[0].mountPath}": "/hostvarrun/crio"},
		},
		"k3s": {
			values: "daemon: {runtime: k3s}",
			want:   map[string]string{daemon + ".volumes[0].hostPath.path}": "/run/k3s/containerd", daemon + ".containers[0].volumeMounts[0].mountPath}": "/hostvarrun/containerd"},
		},
		"cri-dockerd": {
			values: "daemon: {runtime: docker}",
			want:   map[string]string{daemon + ".volumes[0].hostPath.path}": "/run/cri-dockerd.sock", daemon + ".containers[0].volumeMounts[0].mountPath}": "/hostvarrun/cri-dockerd.sock"},
		},
		"a directory of one's own": {
			values: "daemon: {runtime: docker, socketDir: /run/cri-dockerd}",
			want:   map[string]string{daemon + ".volumes[0].hostPath.path}": "/run/cri-dockerd", daemon + ".containers[0].volumeMounts[0].mountPath}": "/hostvarrun/cri-dockerd"},
		},
		"on the network of the node": {
			values: "daemon: {hostNetwork: true}\nnetworkPolicy: {enabled: true}",
			want: map[string]string{
				daemon + ".hostNetwork} {.spec.template.spec.dnsPolicy}": "true ClusterFirstWithHostNet", daemon + ".containers[0].args[0]}": "--addr=127.0.0.1:10221",
				daemon + ".containers[0].livenessProbe.httpGet.host} {.spec.template.spec.containers[0].readinessProbe.httpGet.host}": "127.0.0.1 127.0.0.1",
			},
			absent: []string{"NetworkPolicy/refit-daemon"},
		},
		"NetworkPolicies": {
			values: "networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}], webhooksFrom: [{ipBlock: {cidr: 10.0.0.1/32}}]}",
			want: map[string]string{
				"NetworkPolicy/refit-manager {.spec.ingress[*].ports[*].port}": "webhook metrics", "NetworkPolicy/refit-manager {.spec.ingress[0].from}{.spec.ingress[1].from}": `[{"ipBlock":{"cidr":"10.0.0.1/32"}}][{"namespaceSelector":{}}]`,
				"NetworkPolicy/refit-daemon {.spec.ingress[*].ports[*].port}": "metrics", "NetworkPolicy/refit-certificates {.spec.ingress}": "",
			},
		},
		"more arguments and variables, crash back-off respected, logs as JSON": {
			values: "daemon: {restartBackoff: respect, extraArgs: [--max-concurrent-stops=8], extraEnv: [{name: A, value: b}]}\nlog: {format: json, level: debug}\nmanager: {extraArgs: [--workers=2]}",
			want: map[string]string{
				daemon + ".containers[0].args}":        `["--addr=:10221","--metrics-addr=:10223","--restart-backoff=respect","--log-format=json","--log-level=debug","--max-concurrent-stops=8"]`,
				daemon + ".containers[0].env[*].name}": "NODE_NAME GOMEMLIMIT A",
				manager + ".containers[0].args}":       `["--metrics-addr=:8080","--log-format=json","--log-level=debug","--workers=2"]`,
			},
		},
		"images": {
			values: "image: {registry: 'example.com:5000', repository: team/refit, tag: v2, pullSecrets: [{name: mine}]}\ndaemon: {image: {digest: 'sha256:" + strings.Repeat("0a", 32) + "'}}\nmanager: {image: {repository: other.example.com/manager, tag: v3}}",
			want: map[string]string{
				daemon + ".containers[0].image} {.spec.template.spec.imagePullSecrets[0].name}":              "example.com:5000/team/refit/refit-daemon:v2@sha256:" + strings.Repeat("0a", 32) + " mine",
				manager + ".containers[0].image} {.spec.template.spec.imagePullSecrets[0].name}":             "other.example.com/manager:v3 mine",
				"CronJob/refit-certificates {.spec.jobTemplate.spec.template.spec.containers[0].image}":      "other.example.com/manager:v3",
				"CronJob/refit-certificates {.spec.jobTemplate.spec.template.spec.imagePullSecrets[0].name}": "mine",
			},
		},
		"labels": {
			values: "commonLabels: {team: a}\nstandardLabels: false\nrbac: {aggregate: false}\ndaemon: {podLabels: {tier: node}}",
			want: map[string]string{
				"DaemonSet/refit-daemon {.metadata.labels.team} {.spec.template.metadata.labels.team} {.spec.template.metadata.labels.tier} {.spec.selector.matchLabels}": `a a node {"app.kubernetes.io/name":"refit-daemon"}`,
				"Deployment/refit-manager {.metadata.labels.team} {.spec.template.metadata.labels.team}":                                                                  "a a",
				"ClusterRole/refit-imagepulljob-editor {.metadata.labels}":                                                                                                `{"team":"a"}`,
				"CustomResourceDefinition/restartrollouts.refit.dev {.metadata.labels}":                                                                                   `{"team":"a"}`,
			},
		},
		"certificates by cert-manager": {
			values: "webhook: {certificates: {mode: certManager}}",
			want: map[string]string{
				"Certificate/refit-manager-webhook {.spec.secretName} {.spec.issuerRef.name}": "refit-manager-webhook-cert refit-manager-webhook", "Issuer/refit-manager-webhook {.kind}": "Issuer",
				"Certificate/refit-manager-webhook {.spec.dnsNames[0]}":                                                          "refit-manager-webhook.repairs.svc",
				webhook + ` {.metadata.annotations.cert-manager\.io/inject-ca-from}`:                                             "repairs/refit-manager-webhook",
				`MutatingWebhookConfiguration/refit-manager-sidecarsets {.metadata.annotations.cert-manager\.io/inject-ca-from}`: "repairs/refit-manager-webhook",
			},
			absent: []string{"CronJob/refit-certificates", "ServiceAccount/refit-certificates", "Secret/refit-manager-webhook-cert", "Secret/refit-manager-webhook-ca"},
		},
		"certificates by an issuer of one's own": {
			values: "webhook: {certificates: {mode: certManager, certManager: {issuerRef: {name: corp, kind: ClusterIssuer}}}}",
			want:   map[string]string{"Certificate/refit-manager-webhook {.spec.issuerRef.name} {.spec.issuerRef.kind}": "corp ClusterIssuer"},
			absent: []string{"Issuer/refit-manager-webhook"},
		},
		"certificates that exist": {
			values: "webhook: {certificates: {mode: existing, existing: {secretName: mine, caBundle: QQ==}}}",
			want: map[string]string{
				manager + ".containers[0].args}":                                                              `["--metrics-addr=:8080","--cert-secret=mine"]`,
				webhook + " {.webhooks[*].clientConfig.caBundle}":                                             "QQ== QQ== QQ== QQ== QQ==",
				"Role/refit-manager {.rules[0].resourceNames}":                                                `["mine"]`,
				"MutatingWebhookConfiguration/refit-manager-sidecarsets {.webhooks[*].clientConfig.caBundle}": "QQ== QQ==",
			},
			absent: []string{"CronJob/refit-certificates", "Secret/refit-manager-webhook-cert"},
		},
		"one replica": {
			values: "manager: {replicas: 1, metrics: false}",
			want:   map[string]string{"Deployment/refit-manager {.spec.replicas}": "1", manager + ".containers[0].args}": `["--metrics-addr=0"]`, manager + ".containers[0].ports[*].name}": "webhook health"},
			absent: []string{"PodDisruptionBudget/refit-manager"},
		},
		"without policies": {
			values: "policies: {enabled: false}\nsidecar: {namespaces: [games]}",
			want: map[string]string{
				"games/ServiceAccount/refit-sidecar {.kind}": "ServiceAccount", "ValidatingAdmissionPolicyBinding/refit-daemon-record {.spec.policyName}": "refit-daemon-record",
				"ValidatingAdmissionPolicy/refit-podprobemarker {.metadata.name}": "refit-podprobemarker", "ValidatingAdmissionPolicy/refit-sidecarset-required {.metadata.name}": "refit-sidecarset-required",
				"ValidatingAdmissionPolicy/refit-inplaceupdatepolicy {.metadata.name}": "refit-inplaceupdatepolicy", "ValidatingAdmissionPolicy/refit-daemon-record {.metadata.name}": "refit-daemon-record",
			},
			absent: []string{
				"ValidatingAdmissionPolicy/refit-daemon-pods", "ValidatingAdmissionPolicy/refit-manager-pods", "ValidatingAdmissionPolicyBinding/refit-manager-requests", "ValidatingAdmissionPolicy/refit-sidecar-pods",
				"ValidatingAdmissionPolicy/refit-manager-workloads", "ValidatingAdmissionPolicy/refit-daemon-events",
			},
		},
		"sidecars in two namespaces": {
			values: "sidecar: {namespaces: [games, lobby]}",
			want: map[string]string{
				"games/RoleBinding/refit-sidecar {.subjects[0].namespace}": "games", "lobby/RoleBinding/refit-sidecar {.subjects[0].namespace}": "lobby",
				"lobby/ConfigMap/sidecar-result {.kind}": "ConfigMap", "ValidatingAdmissionPolicy/refit-sidecar-pods {.kind}": "ValidatingAdmissionPolicy",
			},
		},
		"another namespace for pull secrets": {
			values: "pullSecretNamespace: {name: pulls, create: false}",
			want: map[string]string{
				"pulls/Role/refit-daemon {.kind}": "Role", daemon + ".containers[0].args[2]}": "--pull-secret-namespace=pulls",
				manager + ".containers[0].args[1]}": "--pull-secret-namespace=pulls",
			},
			absent: []string{"Namespace/pulls", "Namespace/kruise-daemon-config"},
		},
		"OpenKruise in another namespace": {
			values: "openkruise: {namespace: openkruise}",
			want:   map[string]string{manager + ".containers[0].args[1]}": "--openkruise-namespace=openkruise"},
		},
		"ControllerRevisions of OpenKruise": {
			values: "openkruise: {namespace: openkruise, revisions: true}",
			want: map[string]string{
				manager + ".containers[0].args[2]}":                                       "--openkruise-revisions",
				"openkruise/Role/refit-manager-revisions {.rules[*].verbs}":               `["get","list","watch","create","patch","delete"]`,
				"openkruise/RoleBinding/refit-manager-revisions {.subjects[0].namespace}": "repairs",
			},
		},
		"monitoring": {
			values: "metrics: {podMonitor: {enabled: true, labels: {release: prometheus}, scrapeTimeout: 5s, relabelings: [{targetLabel: node}]}, prometheusRule: {enabled: true}, dashboard: {enabled: true, annotations: {grafana_folder: Refit}}}",
			want: map[string]string{
				"PodMonitor/refit-daemon {.spec.podMetricsEndpoints[0].authorization.credentials} {.metadata.labels.release}":                     `{"key":"token","name":"refit-metrics-token"} prometheus`,
				"PodMonitor/refit-manager {.spec.podMetricsEndpoints[0].port} {.spec.podMetricsEndpoints[0].scheme}":                              "metrics https",
				"PodMonitor/refit-manager {.spec.podMetricsEndpoints[0].scrapeTimeout} {.spec.podMetricsEndpoints[0].relabelings[0].targetLabel}": "5s node",
				"ClusterRole/refit-metrics {.rules}": `[{"nonResourceURLs":["/metrics"],"verbs":["get"]}]`, "Secret/refit-metrics-token {.type}": "kubernetes.io/service-account-token",
				"PrometheusRule/refit {.spec.groups[*].name}":           "refit.recording refit.alerts",
				"PrometheusRule/refit {.spec.groups[1].rules[*].alert}": "RefitRequestsFail RefitStopsHang RefitRuntimeFails RefitProbesLate RefitCertificateExpires RefitManagerAbsent RefitRolloutsFail RefitImagePullsFail RefitObjectNotHandled",
				"PrometheusRule/refit {.spec.groups[1].rules[3].expr}":  "refit_exec_probe_delay_ratio > 2", "ConfigMap/refit-dashboard {.metadata.labels.grafana_dashboard}": "1",
				"ConfigMap/refit-dashboard {.metadata.annotations.grafana_folder}": "Refit",
			},
		},
		"alerts in place of kruise-daemon": {
			values: "metrics: {prometheusRule: {enabled: true}}\nopenkruise: {mode: daemonOnly}",
			want: map[string]string{
				"PrometheusRule/refit {.spec.groups[1].rules[*].alert}": "RefitRequestsFail RefitStopsHang RefitRuntimeFails RefitProbesLate RefitRolloutsFail RefitImagePullsFail RefitObjectNotHandled",
			},
		},
		"alerts without webhooks": {
			values: "metrics: {prometheusRule: {enabled: true}}\nmanager: {features: {containerRecreateRequests: false, restartRollouts: false, sidecarSets: false, serverlessProbes: none}}\npolicies: {hold: none}",
			want: map[string]string{
				"PrometheusRule/refit {.spec.groups[1].rules[*].alert}": "RefitRequestsFail RefitStopsHang RefitRuntimeFails RefitProbesLate RefitManagerAbsent RefitRolloutsFail RefitImagePullsFail RefitObjectNotHandled",
			},
		},
		"a token of one's own for metrics": {
			values: "metrics: {podMonitor: {enabled: true, tokenSecret: {name: mine, key: t}}}\nopenkruise: {mode: daemonOnly}",
			want:   map[string]string{"PodMonitor/refit-daemon {.spec.podMetricsEndpoints[0].authorization.credentials}": `{"key":"t","name":"mine"}`},
			absent: []string{"PodMonitor/refit-manager", "ServiceAccount/refit-metrics", "Secret/refit-metrics-token", "PrometheusRule/refit", "ConfigMap/refit-dashboard"},
		},
		"CRDs of somebody else": {values: "crds: {install: false}", absent: []string{"CustomResourceDefinition/sidecarsets.apps.kruise.io", "CustomResourceDefinition/restartrollouts.refit.dev"}},
		"CRDs that go": {
			values: "crds: {keep: false}",
			want:   map[string]string{`CustomResourceDefinition/sidecarsets.apps.kruise.io {.metadata.annotations.helm\.sh/resource-policy}`: ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := expects(t, tc.values, tc.want)
			for _, key := range tc.absent {
				if _, there := found[key]; there {
					t.Errorf("%s is there", key)
				}
			}
		})
	}
}
