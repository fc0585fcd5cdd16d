package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attacksByTokens are made with the tokens of programs.
func attacksByTokens() map[string]attack {
	all := map[string]attack{}
	for _, some := range []map[string]attack{attacksByDaemon(), attacksByManager(), attacksBySidecar(), attacksByCertificates()} {
		maps.Copy(all, some)
	}
	return all
}

// attacksBySidecar are made with the token of the sidecar of a pod of the attacker.
func attacksBySidecar() map[string]attack {
	status := func(patch client.Patch) func(context.Context, attacker, client.Client, *corev1.Pod) error {
		return func(ctx context.Context, _ attacker, sidecar client.Client, pod *corev1.Pod) error {
			return sidecar.Status().Patch(ctx, pod.DeepCopy(), patch)
		}
	}
	const labels = `{"metadata":{"labels":{"app":"evil"}}}`
	return map[string]attack{
		"sidecar, annotations of its pod": bySidecar(func(ctx context.Context, _ attacker, sidecar client.Client, pod *corev1.Pod) error {
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
				"refit.dev/hot-update-result": hostileText(100 << 10), "kruise.io/sidecarset-hash": hostileText(50 << 10),
			}}})
			if err != nil {
				return err
			}
			return sidecar.Status().Patch(ctx, pod.DeepCopy(), merge(string(text)))
		}),
		"sidecar, labels of its pod":     bySidecar(status(merge(`{"metadata":{"labels":{"sidecarset":"hostile","app.kubernetes.io/name":"refit-manager"}}}`))),
		"sidecar, conditions of its pod": bySidecar(status(strategic(farAway("refit.dev/HotUpdated")))),
		"sidecar, its record": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, pod *corev1.Pod) error {
			return a.records(ctx, sidecar, "Pod."+pod.Name, 200<<10)
		}),
		"sidecar, an Event about its pod": bySidecar(func(ctx context.Context, _ attacker, sidecar client.Client, pod *corev1.Pod) error {
			return sidecar.Create(ctx, aboutPod(pod, ""))
		}),
		"sidecar, readiness of its pod": bySidecar(status(strategic(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)),
			byPolicy, "of its own only"),
		"sidecar, the record of another": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, _ *corev1.Pod) error {
			return a.records(ctx, sidecar, "Deployment.web", 1)
		},
			byPolicy, "its own workload"),
		"sidecar, another pod": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, _ *corev1.Pod) error {
			another := a.pod()
			if err := a.Create(ctx, another); err != nil {
				return err
			}
			return sidecar.Status().Patch(ctx, another, merge(labels))
		}, byPolicy, "may only write the status of that pod"),
		"sidecar, an Event about another pod": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, _ *corev1.Pod) error {
			another := a.pod()
			another.Name = "none"
			return sidecar.Create(ctx, aboutPod(another, ""))
		}, byPolicy, "its own pod"),
		"sidecar, a pod of the other": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, _ *corev1.Pod) error {
			return sidecar.Status().Patch(ctx, a.victim.DeepCopy(), merge(labels))
		}, "cannot patch"),
		"sidecar, the records of the other": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, _ *corev1.Pod) error {
			return sidecar.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.other, Name: records}}, merge(`{"data":null}`))
		}, "cannot patch"),
		"sidecar, a new pod": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, _ *corev1.Pod) error {
			return sidecar.Create(ctx, a.pod())
		}, "cannot create"),
		"sidecar, secrets": bySidecar(func(ctx context.Context, a attacker, sidecar client.Client, _ *corev1.Pod) error {
			return sidecar.List(ctx, &corev1.SecretList{}, client.InNamespace(a.namespace))
		}, "cannot list"),
	}
}

// records writes under a key of the ConfigMap in which sidecars record what their workload has accepted. Each round deletes it.
func (a attacker) records(ctx context.Context, sidecar client.Client, key string, bytes int) error {
	in := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: records}}
	if err := client.IgnoreAlreadyExists(a.Create(ctx, in.DeepCopy())); err != nil {
		return fmt.Errorf("create ConfigMap: %w", err)
	}
	text, err := json.Marshal(map[string]any{"data": map[string]any{key: hostileText(bytes)}})
	if err != nil {
		return err
	}
	return sidecar.Patch(ctx, in, merge(string(text)))
}

// attacksByCertificates are made with the token of the certificates Job. What it may write ends the calls of the webhooks, so that nothing is
// written but an annotation, which is removed.
func attacksByCertificates() map[string]attack {
	certificates := func(t stolen) client.Client { return t.certificates }
	cannot := func(do func(context.Context, client.Client, attacker) error, word string) attack {
		return refused(func(ctx context.Context, a attacker) error { return do(ctx, a.stolen.certificates, a) }, word)
	}
	return map[string]attack{
		"certificates, an annotation of 100 kB": {do: func(ctx context.Context, a attacker) error {
			for _, value := range []string{strings.Repeat("x", 100<<10), ""} {
				if err := a.takes(ctx, "an annotation", func(ctx context.Context) error { return annotatesCertificate(ctx, a.stolen.certificates, value) }); err != nil {
					return err
				}
			}
			return nil
		}},
		"certificates, a patch of the webhooks":   refused(writesWebhooks(certificates), "cannot patch"),
		"certificates, a patch of its own secret": refused(writesSecret(certificates, systemNamespace, "refit-manager-webhook-ca"), "cannot patch"),
		"certificates, secrets of Refit":          listsSecrets(certificates, ofTheSystem),
		"certificates, secrets of the other":      listsSecrets(certificates, ofTheOther),
		"certificates, a pod of the other":        createsPod(certificates),
		"certificates, deletion of the other":     deletesVictim(certificates),
		"certificates, status of the other":       statusOfVictim(certificates, `{"status":{"phase":"Failed"}}`, "cannot patch"),
		"certificates, a webhook of its own": cannot(func(ctx context.Context, c client.Client, _ attacker) error {
			return c.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{GenerateName: "evil-"}}, client.DryRunAll)
		}, "cannot create"),
		"certificates, deletion of the webhooks": cannot(func(ctx context.Context, c client.Client, _ attacker) error {
			return c.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "refit-manager"}}, client.DryRunAll)
		}, "cannot delete"),
		"certificates, the SidecarSet of both": cannot(func(ctx context.Context, c client.Client, a attacker) error {
			set, err := a.parse("{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: $SET}}")
			if err != nil {
				return err
			}
			set.SetNamespace("")
			return c.Patch(ctx, set, merge(`{"spec":{"containers":[]}}`))
		}, "cannot patch"),
	}
}

// annotatesCertificate writes the Secret with the serving certificate of refit-manager, which an empty value leaves as it was.
func annotatesCertificate(ctx context.Context, c client.Client, value string) error {
	return until(ctx, attackPatience, func(ctx context.Context) (bool, error) {
		secret := &corev1.Secret{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "refit-manager-webhook-cert"}, secret); err != nil {
			return false, err
		}
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "example.com/x", value)
		if value == "" {
			delete(secret.Annotations, "example.com/x")
		}
		err := c.Update(ctx, secret)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}
