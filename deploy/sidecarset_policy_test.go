package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/match"
)

// The policy has to select the pods that the webhook selects: one more would be refused for ever, one less could be missed.
func TestRequiredSidecarsPolicySelectsAsTheWebhookDoes(t *testing.T) {
	t.Parallel()
	required := shipped(t, "manager/*.yaml", "refit-sidecarset-required")
	in := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	selectors := []*metav1.LabelSelector{
		{MatchLabels: map[string]string{"app": "web"}}, {MatchLabels: map[string]string{"app": "db"}},
		{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: in("tier", metav1.LabelSelectorOpDoesNotExist).MatchExpressions},
		in("app", metav1.LabelSelectorOpIn, "web", "db"), in("app", metav1.LabelSelectorOpIn, "db"),
		in("app", metav1.LabelSelectorOpNotIn, "web"), in("app", metav1.LabelSelectorOpNotIn, "db"), in("tier", metav1.LabelSelectorOpNotIn, "x"),
		in("app", metav1.LabelSelectorOpExists), in("tier", metav1.LabelSelectorOpExists),
		in("app", metav1.LabelSelectorOpDoesNotExist), in("tier", metav1.LabelSelectorOpDoesNotExist),
	}
	web := map[string]string{"app": "web"}
	selected := 0
	check := func(spec v1beta1.SidecarSetSpec, labels map[string]string) {
		t.Helper()
		set := &v1beta1.SidecarSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps.kruise.io/v1beta1", Kind: "SidecarSet"},
			ObjectMeta: metav1.ObjectMeta{Name: "guard"}, Spec: spec,
		}
		s, err := match.NewSelector(&spec)
		if err != nil {
			t.Fatal(err)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: web}}
		want := s.Pod(labels) && s.Namespace(namespace.Name, namespace.Labels)
		pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels}}
		_, refused := required.evaluate(t, review{operation: admission.Create, object: text(t, pod), params: text(t, set), namespace: namespace})
		if want != (refused != "") {
			t.Errorf("webhook selects: %t, policy refuses: %q\n%s\n%v", want, refused, text(t, set), labels)
		}
		if want {
			selected++
		}
	}
	for _, selector := range selectors {
		for _, labels := range []map[string]string{nil, web, {"tier": "x"}} {
			check(v1beta1.SidecarSetSpec{Selector: selector}, labels)
		}
		check(v1beta1.SidecarSetSpec{Selector: selectors[0], NamespaceSelector: selector}, web)
	}
	check(v1beta1.SidecarSetSpec{Selector: selectors[0], Namespace: "shop"}, web)
	check(v1beta1.SidecarSetSpec{Selector: selectors[0], Namespace: "other"}, web)
	if selected < 20 {
		t.Errorf("only %d pods are selected: this tests little", selected)
	}
}

// What a client sends proves nothing: one annotation let a pod through without its required sidecars. What admission adds in the same
// request is not among the managed fields.
func TestRequiredSidecarsPolicyLetsOnlyInjectedPodsThrough(t *testing.T) {
	t.Parallel()
	required := shipped(t, "manager/*.yaml", "refit-sidecarset-required")
	const guard = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","metadata":{"name":"guard"},"spec":{"selector":{"matchLabels":{"app":"web"}}}}`
	const list, skipped, checked, again = v1beta1.AnnotationSidecarSetList, v1beta1.AnnotationSidecarSetSkipped, v1beta1.AnnotationSidecarSetChecked, v1beta1.AnnotationSidecarSetCheckedAgain
	for name, tc := range map[string]struct {
		annotations map[string]string
		sent        []string // keys of annotations
		unknown     bool     // no managed fields
		set         string
		refused     bool
	}{
		"not injected":                  {set: guard, refused: true},
		"injected":                      {annotations: map[string]string{list: "a,guard"}, set: guard},
		"it says so":                    {annotations: map[string]string{list: "a,guard"}, sent: []string{list}, set: guard, refused: true},
		"it says so in every way":       {annotations: map[string]string{list: "guard", skipped: `{"guard":"no"}`, checked: "guard,-guard", again: "guard,-guard"}, sent: []string{list, skipped, checked, again}, set: guard, refused: true},
		"nobody knows who says so":      {annotations: map[string]string{list: "guard", checked: "guard"}, unknown: true, set: guard, refused: true},
		"another of a similar name":     {annotations: map[string]string{list: "guard2,my-guard"}, set: guard, refused: true},
		"skipped":                       {annotations: map[string]string{skipped: `{"guard":"replaced by the canary new"}`}, set: guard},
		"it says that it was skipped":   {annotations: map[string]string{skipped: `{"guard":"replaced by the canary new"}`}, sent: []string{skipped}, set: guard, refused: true},
		"another skipped because of":    {annotations: map[string]string{skipped: `{"base":"replaced by the canary guard"}`}, set: guard, refused: true},
		"from a manifest":               {annotations: map[string]string{list: "guard", checked: "a,guard"}, sent: []string{list}, set: guard},
		"from a manifest of such a pod": {annotations: map[string]string{list: "guard", again: "guard"}, sent: []string{list, checked}, set: guard},
		"from a manifest, skipped":      {annotations: map[string]string{skipped: `{"guard":"x"}`, checked: "-guard"}, sent: []string{skipped}, set: guard},
		"from a manifest, of another":   {annotations: map[string]string{list: "guard", checked: "a"}, sent: []string{list}, set: guard, refused: true},
		"injection is paused":           {set: strings.Replace(guard, `"selector"`, `"injectionStrategy":{"paused":true},"selector"`, 1)},
		"mirror pod":                    {annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}, sent: []string{corev1.MirrorPodAnnotationKey}, set: guard},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
				Name: "web", Labels: map[string]string{"app": "web"}, Annotations: tc.annotations,
			}}
			if !tc.unknown {
				pod.ManagedFields = sentAnnotations(t, tc.sent)
			}
			_, refused := required.evaluate(t, review{operation: admission.Create, object: text(t, pod), params: tc.set, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}})
			if (refused != "") != tc.refused {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

// sentAnnotations are the managed fields of a pod whose client has sent it with these annotations.
func sentAnnotations(t *testing.T, keys []string) []metav1.ManagedFieldsEntry {
	t.Helper()
	fields := map[string]any{}
	for _, key := range keys {
		fields["f:"+key] = map[string]any{}
	}
	metadata := map[string]any{"f:labels": map[string]any{"f:app": map[string]any{}}}
	if len(keys) > 0 {
		metadata["f:annotations"] = fields
	}
	return []metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(text(t, map[string]any{"f:metadata": metadata, "f:spec": map[string]any{}})),
	}}
}

// Until the API server knows a kind that a CRD has added, for up to 30 s after the CRD has been created, it cannot evaluate a
// policy that has it as the kind of its parameters.
func TestNothingOfOthersIsRefusedWhileTheKindOfParametersIsUnknown(t *testing.T) {
	t.Parallel()
	ours := func(group string) bool { return group == "apps.kruise.io" || group == "refit.dev" }
	found := 0
	for _, p := range documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, "*/*.yaml", "ValidatingAdmissionPolicy") {
		if p.Spec.ParamKind == nil {
			continue
		}
		if kind, err := schema.ParseGroupVersion(p.Spec.ParamKind.APIVersion); err != nil || !ours(kind.Group) {
			continue
		}
		found++
		for _, rule := range p.Spec.MatchConstraints.ResourceRules {
			for _, group := range rule.APIGroups {
				if !ours(group) && *p.Spec.FailurePolicy != admissionregistrationv1.Ignore {
					t.Errorf("policy %s refuses %s of group %q while the kind of its parameters is unknown: failurePolicy %s, want Ignore", p.Name, rule.Resources, group, *p.Spec.FailurePolicy)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no policy has parameters of our kinds")
	}
}

func text(t *testing.T, object any) string {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
