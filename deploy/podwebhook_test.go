package deploy_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
)

// podWebhook is one of the webhooks for pods. A pod is never held up for want of it.
func podWebhook(t *testing.T, name string) admissionregistrationv1.MutatingWebhook {
	t.Helper()
	webhooks := documents[admissionregistrationv1.MutatingWebhookConfiguration](t, "manager/*.yaml", "MutatingWebhookConfiguration")[0].Webhooks
	i := slices.IndexFunc(webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("no webhook %s", name)
	}
	if *webhooks[i].FailurePolicy != admissionregistrationv1.Ignore || *webhooks[i].SideEffects != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("%s: %+v", name, webhooks[i])
	}
	return webhooks[i]
}

// Other pods cost no call.
func TestPodsThatMayBeBoundToAVirtualNodeAreAnnotated(t *testing.T) {
	t.Parallel()
	w := podWebhook(t, "mpodprobe.refit.dev")
	const affinity = `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"type","operator":"In","values":["VALUE"]}]}]}}}`
	for name, tc := range map[string]struct {
		metadata, spec string
		called         bool
	}{
		"any":                     {"", ``, false},
		"bound":                   {"", `"nodeName":"virtual"`, true},
		"selects a virtual node":  {"", `"nodeSelector":{"type":"virtual-kubelet"}`, true},
		"selects another node":    {"", `"nodeSelector":{"type":"gpu"}`, false},
		"tolerates the taint":     {"", `"tolerations":[{"key":"a","operator":"Exists"},{"key":"virtual-kubelet.io/provider","operator":"Exists"}]`, true},
		"tolerates every taint":   {"", `"tolerations":[{"operator":"Exists"}]`, false},
		"has affinity to one":     {"", strings.Replace(affinity, "VALUE", "virtual-kubelet", 1), true},
		"has affinity to another": {"", strings.Replace(affinity, "VALUE", "gpu", 1), false},
		"a mirror pod":            {`,"annotations":{"kubernetes.io/config.mirror":"x"}`, `"nodeName":"virtual"`, false},
	} {
		pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"` + tc.metadata + `},"spec":{` + tc.spec + `}}`
		if called, refused := (policy{conditions: w.MatchConditions}).evaluate(t, review{operation: admission.Create, object: pod}); called != tc.called || refused != "" {
			t.Errorf("%s: called %t, %s", name, called, refused)
		}
	}
}

func TestReadinessGatesAreForPodsThatKubeletDoesNotReadFromAFile(t *testing.T) {
	t.Parallel()
	w := podWebhook(t, "mpodreadinessgate.refit.dev")
	for metadata, want := range map[string]bool{"": true, `,"annotations":{"kubernetes.io/config.mirror":"x"}`: false} {
		pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"` + metadata + `},"spec":{}}`
		if called, _ := (policy{conditions: w.MatchConditions}).evaluate(t, review{operation: admission.Create, object: pod}); called != want {
			t.Errorf("%q: called %t", metadata, called)
		}
	}
}
