package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// kinds are Refit's CRDs.
var kinds = []string{
	"containerrecreaterequests.apps.kruise.io", "imagelistpulljobs.apps.kruise.io", "imagepulljobs.apps.kruise.io", "inplaceupdatepolicies.refit.dev", "nodeimages.apps.kruise.io",
	"nodepodprobes.apps.kruise.io", "podprobemarkers.apps.kruise.io", "restartrollouts.refit.dev", "restartschedules.refit.dev", "restarttriggers.refit.dev",
	"sidecarsets.apps.kruise.io",
}

// crds checks that the API server serves the kinds that Refit reads.
func (e *examiner) crds(ctx context.Context) []Finding {
	var missing, broken []string
	for _, name := range kinds {
		var crd apiextensionsv1.CustomResourceDefinition
		err := e.API.Get(ctx, client.ObjectKey{Name: name}, &crd)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return unread("CustomResourceDefinitions", err)
		case !established(&crd):
			broken = append(broken, name)
		}
	}
	switch {
	case len(broken) > 0:
		return one(Failed, "not established: %s", strings.Join(broken, ", "))
	case slices.Contains(missing, kinds[0]):
		return one(Failed, "missing: %s", strings.Join(missing, ", "))
	case len(missing) > 0:
		return one(Warning, "missing: %s", strings.Join(missing, ", "))
	}
	return one(OK, "%d of %d are served", len(kinds), len(kinds))
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// noPod is the name of a pod that does not exist. The webhook refuses a request for it.
const noPod = "refit-doctor-no-such-pod"

// webhook creates a request with dryRun, which the webhook has to refuse.
func (e *examiner) webhook(ctx context.Context) []Finding {
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, GenerateName: "refit-doctor-"}}
	request.Spec.PodName = noPod
	request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}
	began := time.Now()
	err := e.API.Create(ctx, request, client.DryRunAll)
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err == nil:
		return one(Failed, "a request for a pod that does not exist was admitted: no webhook checks ContainerRecreateRequests")
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return one(Skipped, "there is no kind ContainerRecreateRequest")
	case strings.Contains(err.Error(), "denied the request"), strings.Contains(err.Error(), noPod):
		return one(OK, "it answered in %s", took)
	case apierrors.IsForbidden(err):
		return one(Skipped, "you may not create ContainerRecreateRequests in namespace %s", e.Namespace)
	}
	return one(Failed, "it cannot be reached: %v", err)
}

// expiresSoon is the remaining validity below which a certificate should have been renewed.
const expiresSoon = 30 * 24 * time.Hour

// configurations are Refit's webhook configurations. The second one exists if SidecarSets are injected, the third one if a webhook
// holds workloads.
var configurations = []string{"refit-manager", "refit-manager-sidecarsets", holdWebhook}

// certificates checks the CA certificates in the webhook configurations, and the serving certificate if the user may read
// it.
func (e *examiner) certificates(ctx context.Context) []Finding {
	switch {
	case e.deployment == nil && e.lookErr != nil:
		return e.unseen()
	case e.deployment == nil:
		return one(Skipped, "there is no refit-manager")
	}
	var findings []Finding
	for i, name := range configurations {
		var configuration admissionregistrationv1.MutatingWebhookConfiguration
		err := e.API.Get(ctx, client.ObjectKey{Name: name}, &configuration)
		switch {
		case apierrors.IsNotFound(err) && i > 0:
			continue
		case apierrors.IsNotFound(err):
			findings = append(findings, one(Warning, "there is no MutatingWebhookConfiguration %s", name)...)
			continue
		case err != nil:
			return append(findings, unread("MutatingWebhookConfigurations", err)...)
		}
		for _, webhook := range configuration.Webhooks {
			if what := "authority of " + webhook.Name; len(webhook.ClientConfig.CABundle) == 0 {
				findings = append(findings, one(Failed, "%s: caBundle is empty: has the Job refit-certificates run?", what)...)
			} else {
				findings = append(findings, e.certificate(what, webhook.ClientConfig.CABundle)...)
			}
		}
	}
	var secret corev1.Secret
	if err := e.API.Get(ctx, client.ObjectKey{Namespace: e.System, Name: e.certSecret()}, &secret); err == nil {
		findings = append(findings, e.certificate("serving certificate", leaf(secret.Data[corev1.TLSCertKey]))...)
	}
	return shortened(findings)
}

// certSecret returns the Secret with the serving certificate, from the arguments of refit-manager.
func (e *examiner) certSecret() string {
	for _, container := range e.deployment.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			if name, ok := strings.CutPrefix(arg, "--cert-secret="); ok {
				return name
			}
		}
	}
	return "refit-manager-webhook-cert"
}

// leaf returns the first certificate of a chain. The others are its authorities, which may be valid for longer.
func leaf(chain []byte) []byte {
	_, rest := pem.Decode(chain)
	return chain[:len(chain)-len(rest)]
}

// shortened returns only one of several findings if all are OK.
func shortened(findings []Finding) []Finding {
	if bad := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Result == OK }); len(bad) > 0 || len(findings) == 0 {
		return bad
	}
	return findings[len(findings)-1:]
}

var errNoCertificate = errors.New("no certificate in PEM")

func (e *examiner) certificate(what string, text []byte) []Finding {
	var latest time.Time
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return one(Failed, "%s: %v", what, err)
		}
		// Of several authorities, such as during a renewal, the one that expires last counts.
		if certificate.NotAfter.After(latest) {
			latest = certificate.NotAfter
		}
	}
	left := latest.Sub(e.Now)
	day := latest.Format(time.DateOnly)
	switch {
	case latest.IsZero():
		return one(Failed, "%s: %v", what, errNoCertificate)
	case left <= 0:
		return one(Failed, "%s: expired on %s", what, day)
	case left < expiresSoon:
		return one(Warning, "%s: expires on %s, in %.0f days", what, day, left.Hours()/24)
	}
	return one(OK, "%s: valid until %s, for %.0f days", what, day, left.Hours()/24)
}
