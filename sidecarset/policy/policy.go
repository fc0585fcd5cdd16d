// Package policy compiles a SidecarSet to a MutatingAdmissionPolicy, which the API server evaluates itself: pods are
// injected even if no refit-manager runs. Only SidecarSets that add the same to every pod can be compiled.
package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1beta1"
)

// prefix is the prefix of the names of the policies.
const prefix = "refit-sidecarset-"

// Name returns the name of the policy of a SidecarSet, and of its binding.
func Name(set *v1beta1.SidecarSet) string { return prefix + set.Name }

// Policy is a MutatingAdmissionPolicy with its binding.
type Policy struct {
	Policy  *admissionregistrationv1.MutatingAdmissionPolicy
	Binding *admissionregistrationv1.MutatingAdmissionPolicyBinding
}

// Compile returns the policy of a SidecarSet as stored in the cluster, because its hashes are computed after the API
// server has set defaults. namespace is the namespace of refit-manager, whose pods are not injected, as pods of
// kube-system and of the excluded namespaces. now is recorded in the pods as the time of their update. The errors name the fields that prevent the compilation.
func Compile(set *v1beta1.SidecarSet, namespace string, excluded []string, now time.Time) (*Policy, field.ErrorList) {
	if errs := obstacles(set); len(errs) > 0 {
		return nil, errs
	}
	added, err := additions(set, namespace, now)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("spec"), set.Name, err.Error())}
	}
	failurePolicy, reinvocation := admissionregistrationv1.Ignore, admissionregistrationv1.NeverReinvocationPolicy
	if set.Spec.InjectionStrategy.FailurePolicy == v1beta1.InjectionFail {
		failurePolicy = admissionregistrationv1.Fail
	}
	p := &Policy{
		Policy:  &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: Name(set)}},
		Binding: &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: Name(set)}},
	}
	p.Policy.TypeMeta = metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingAdmissionPolicy"}
	p.Binding.TypeMeta = metav1.TypeMeta{APIVersion: p.Policy.APIVersion, Kind: "MutatingAdmissionPolicyBinding"}
	p.Policy.Spec = admissionregistrationv1.MutatingAdmissionPolicySpec{
		ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindSidecarSet},
		MatchConstraints: constraints(set, append([]string{namespace}, excluded...)),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "not-a-mirror-pod", Expression: "!('" + corev1.MirrorPodAnnotationKey + "' in object.metadata.?annotations.orValue({}))"},
			{Name: "asked-for", Expression: "params.spec.?injectionStrategy.?engine.orValue('') == 'Policy' && !params.spec.?injectionStrategy.?paused.orValue(false) && " +
				"!has(params.metadata.deletionTimestamp)"},
		},
		FailurePolicy: &failurePolicy, ReinvocationPolicy: reinvocation, Variables: added.variables(),
	}
	for _, expression := range []string{added.patch(), added.annotations()} {
		p.Policy.Spec.Mutations = append(p.Policy.Spec.Mutations, admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
		})
	}
	allow := admissionregistrationv1.AllowAction
	p.Binding.Spec = admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
		PolicyName: p.Policy.Name,
		// Without the SidecarSet nothing is injected.
		ParamRef: &admissionregistrationv1.ParamRef{Name: set.Name, ParameterNotFoundAction: &allow},
	}
	return p, nil
}

// constraints match the pods that the SidecarSet selects and for which the webhook would be called.
func constraints(set *v1beta1.SidecarSet, excluded []string) *admissionregistrationv1.MatchResources {
	namespaces := &metav1.LabelSelector{}
	if set.Spec.NamespaceSelector != nil {
		namespaces = set.Spec.NamespaceSelector.DeepCopy()
	}
	if set.Spec.Namespace != "" {
		namespaces.MatchExpressions = append(namespaces.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{set.Spec.Namespace},
		})
	}
	namespaces.MatchExpressions = append(namespaces.MatchExpressions,
		metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: append([]string{metav1.NamespaceSystem}, excluded...)},
		metav1.LabelSelectorRequirement{Key: v1beta1.LabelSidecarInjection, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"disabled"}})
	scope := admissionregistrationv1.NamespacedScope
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: namespaces, ObjectSelector: set.Spec.Selector.DeepCopy(),
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &scope},
		}}},
	}
}

// patch returns the expression that removes what is replaced, and adds to the lists of the pod. It is one expression because
// the API server encodes and decodes the pod for each mutation, which takes longer than the injection. The annotations have
// their own: the cost of an expression is limited.
func (a *added) patch() string {
	terms := a.removals()
	for _, group := range []struct {
		path          string
		before, after []json.RawMessage
	}{
		{"/spec/initContainers", a.initBefore, a.initAfter}, {"/spec/containers", a.before, a.after}, {"/spec/volumes", nil, a.volumes}, {secretsPath, nil, a.secrets},
	} {
		if len(group.before)+len(group.after) == 0 {
			continue
		}
		terms = append(terms, ifMissing(group.path, "[]"))
		for i, value := range group.before {
			terms = append(terms, "["+operation(fmt.Sprintf("%s/%d", group.path, i), literal(value))+"]")
		}
		for _, value := range group.after {
			term := "[" + operation(group.path+"/-", literal(value)) + "]"
			if group.path == secretsPath { // the pod may already have it
				term = "(has(object.spec.imagePullSecrets) && object.spec.imagePullSecrets.exists(s, s.name == " + quote(nameOf(value)) + ") ? [] : " + term + ")"
			}
			terms = append(terms, term)
		}
	}
	return strings.Join(terms, " + ")
}

const secretsPath = "/spec/imagePullSecrets" //nolint:gosec // a path

// nameOf returns the name of a container, a volume or a pull secret.
func nameOf(value json.RawMessage) string {
	var named corev1.LocalObjectReference
	if err := json.Unmarshal(value, &named); err != nil {
		panic(err) // cannot happen: it has been encoded from one
	}
	return named.Name
}

// member returns the CEL expression for the field of a pod at a path.
func member(path string) string {
	return "object." + strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
}

// ifMissing returns an expression that adds an empty list or map if the pod has none, so that something can be added to it.
func ifMissing(path, empty string) string {
	return "(has(" + member(path) + ") && " + member(path) + " != null ? [] : [" + operation(path, empty) + "])"
}

func operation(path, value string) string {
	return `JSONPatch{op: "add", path: ` + quote(path) + ", value: " + value + "}"
}
