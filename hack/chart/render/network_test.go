package render_test

import "testing"

// Where the API server reaches the webhooks, and for how long it waits.
func TestNetworkOfTheManager(t *testing.T) {
	t.Parallel()
	const (
		network = "Deployment/refit-manager {.spec.template.spec.hostNetwork} {.spec.template.spec.dnsPolicy} {.spec.strategy.rollingUpdate.maxSurge}"
		ports   = "Deployment/refit-manager {.spec.template.spec.containers[0].ports[*].containerPort} {.spec.template.spec.containers[0].args}"
		timeout = "MutatingWebhookConfiguration/refit-manager-sidecarsets {.webhooks[*].timeoutSeconds}"
	)
	for name, tc := range map[string]struct {
		values string
		want   map[string]string
	}{
		"defaults": {want: map[string]string{network: "  1", ports: `9443 8081 8080 ["--metrics-addr=:8080"]`, timeout: "5 5"}},
		"network of the node": {
			values: "manager: {hostNetwork: true, ports: {webhook: 10260, health: 10261, metrics: 10262}}",
			want: map[string]string{
				network: "true ClusterFirstWithHostNet 0",
				ports:   `10260 10261 10262 ["--metrics-addr=:10262","--webhook-port=10260","--health-addr=:10261"]`,
			},
		},
		"timeout": {values: "webhook: {timeoutSeconds: 10}", want: map[string]string{timeout: "10 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := rendered(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			for where, want := range tc.want {
				if got := found.at(t, where); got != want {
					t.Errorf("%s: %q, want %q", where, got, want)
				}
			}
		})
	}
}
