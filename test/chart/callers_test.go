package chart_test

import (
	"os"
	"path/filepath"
	"strings"
)

// authority makes a ConfigMap with the authority of the certificate that the API server of the cluster has for the webhooks, and
// returns the flag with which the chart demands it.
func (p *place) authority() (flag string) {
	p.t.Helper()
	const name = "api-server"
	file := filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "pki", "webhook-client-ca.crt")
	p.run(p.kubectl, "create", "configmap", name, "--namespace="+namespace, "--from-file=ca.crt="+file)
	return "--set=webhook.callers.clientCA.configMapName=" + name
}

// refusesWithoutCertificate calls a webhook through the proxy of the API server, which has the API server's address and no certificate.
func (p *place) refusesWithoutCertificate() {
	p.t.Helper()
	const webhook = "/api/v1/namespaces/" + namespace + "/services/https:refit-manager-webhook:443/proxy/mutate-apps-kruise-io-containerrecreaterequest"
	out, err := output(p.t.Context(), "{}", p.kubectl, "create", "--raw="+webhook, "--filename=-")
	if err == nil || !strings.Contains(out, "no client certificate") {
		p.t.Errorf("a call without a client certificate: %v\n%s", err, out)
	}
}
