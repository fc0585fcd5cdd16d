package config

import "fmt"

// WebhookClient is the name of the certificate by which the API server authenticates itself to the webhooks of Refit, and
// WebhookAuthority the name of its authority, which signs nothing else.
const (
	WebhookClient    = "webhook-client"
	WebhookAuthority = "webhook-client-ca"
)

// webhookHost is the Service of the webhooks as the API server looks for its user in a kubeconfig file.
const webhookHost = "refit-manager-webhook.refit-system.svc"

// AdmissionFile is the path of [ControlPlane.Admission].
func (c ControlPlane) AdmissionFile() string { return c.State.Path("config", "admission.yaml") }

// WebhookKubeconfigFile is the path of [ControlPlane.WebhookKubeconfig].
func (c ControlPlane) WebhookKubeconfigFile() string {
	return c.State.Path("config", "webhooks.kubeconfig")
}

// Admission configures the admission plugins that call webhooks. A webhook that asks for no certificate does not get one.
func (c ControlPlane) Admission() string {
	plugin := `- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %q
`
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	for _, name := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		text += fmt.Sprintf(plugin, name, c.WebhookKubeconfigFile())
	}
	return text
}

// WebhookKubeconfig names the certificate for the webhooks of Refit.
func (c ControlPlane) WebhookKubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
users:
- name: %s
  user:
    client-certificate: %q
    client-key: %q
`, webhookHost, c.State.Path("pki", WebhookClient+".crt"), c.State.Path("pki", WebhookClient+".key"))
}
