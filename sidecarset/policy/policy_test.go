package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/policy"
)

const simple = `
metadata: {name: log, resourceVersion: "7"}
spec:
  namespace: shop
  selector: {matchLabels: {app: web}}
  injectionStrategy: {engine: Policy}
  initContainers: [{name: native, image: n:1, restartPolicy: Always}, {name: first, image: f:1, podInjectPolicy: BeforeAppContainer}]
  containers: [{name: agent, image: agent:1, args: ["--say", "it's \"quoted\"\n"], ports: [{containerPort: 8080}], volumeMounts: [{name: spool, mountPath: /spool}]},
    {name: back, image: back:1, podInjectPolicy: AfterAppContainer}]
  volumes: [{name: spool, emptyDir: {}}, {name: unused, emptyDir: {}}]
  imagePullSecrets: [{name: pull}]
`

func sidecarSet(t *testing.T, text string) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{}
	if err := yaml.UnmarshalStrict([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	return set
}

// compile is the policy of a SidecarSet that has one.
func compile(t *testing.T, set *v1beta1.SidecarSet, now time.Time) *policy.Policy {
	t.Helper()
	compiled, errs := policy.Compile(set, "refit-system", nil, now)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return compiled
}

func TestWhatDependsOnThePodIsRefusedWithItsField(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string { return strings.Replace(simple, old, replacement, 1) }
	for field, manifest := range map[string]string{
		"metadata.resourceVersion":                               with(`, resourceVersion: "7"`, ""),
		"metadata.annotations[apps.kruise.io/sidecarset-canary]": with("{name: log,", `{name: log, annotations: {apps.kruise.io/sidecarset-canary: "true"},`),
		"spec.selector": with("  selector: {matchLabels: {app: web}}\n", ""),
		"metadata.annotations[sidecarset.refit.dev/service-account]":         with("{name: log,", `{name: log, annotations: {sidecarset.refit.dev/service-account: agent},`),
		"metadata.annotations[sidecarset.refit.dev/share-process-namespace]": with("{name: log,", `{name: log, annotations: {sidecarset.refit.dev/share-process-namespace: "true"},`),
		"spec.injectionStrategy.engine":                                      with("engine: Policy", "engine: Webhook"),
		"spec.injectionStrategy.revision":                                    with("engine: Policy", "engine: Policy, revision: {customVersion: a}"),
		"spec.injectionStrategy.conflictPolicy":                              with("engine: Policy", "engine: Policy, conflictPolicy: KeepPod"),
		"spec.injectionStrategy.allowedPodOverrides":                         with("engine: Policy", "engine: Policy, allowedPodOverrides: [OptOut]"),
		"spec.patchContainers":                                               simple + "  patchContainers: [{env: [{name: A, value: b}]}]\n",
		"spec.patchPodMetadata":                                              simple + "  patchPodMetadata: [{annotations: {a: b}}]\n",
		"spec.podVolumes":                                                    simple + "  podVolumes: [data]\n",
		"spec.initContainers[0].shareVolumePolicy.type":                      with("{name: native,", "{name: native, shareVolumePolicy: {type: enabled},"),
		"spec.containers[0].upgradeStrategy.upgradeType":                     with("{name: agent,", "{name: agent, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e},"),
		"spec.containers[0].shareVolumeDevicePolicy.type":                    with("{name: agent,", "{name: agent, shareVolumeDevicePolicy: {type: enabled},"),
		"spec.containers[1].transferEnv":                                     with("{name: back,", "{name: back, transferEnv: [{sourceContainerName: app, envName: A}],"),
		"spec.containers[1].resourcesPolicy":                                 with("{name: back,", "{name: back, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu}}},"),
		"spec.containers[0].futureField":                                     with("{name: agent,", "{name: agent, futureField: {a: b},"),
		"spec.containers[1].versionLabel":                                    with("{name: back,", "{name: back, versionLabel: v,"),
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			_, errs := policy.Compile(sidecarSet(t, manifest), "refit-system", nil, time.Now())
			if len(errs) != 1 || errs[0].Field != field {
				t.Errorf("got %v", errs)
			}
		})
	}
}

func TestThePolicySelectsAsTheWebhookDoes(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, strings.Replace(simple, "  namespace: shop\n", "  namespace: shop\n  namespaceSelector: {matchLabels: {team: a}}\n", 1))
	compiled, errs := policy.Compile(set, "refit-system", []string{"payments"}, time.Now())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	constraints := compiled.Policy.Spec.MatchConstraints
	if got := constraints.ObjectSelector.MatchLabels["app"]; got != "web" {
		t.Errorf("objectSelector %v", constraints.ObjectSelector)
	}
	var text []string
	for _, e := range constraints.NamespaceSelector.MatchExpressions {
		text = append(text, e.Key+" "+string(e.Operator)+" "+strings.Join(e.Values, ","))
	}
	want := []string{corev1.LabelMetadataName + " In shop", corev1.LabelMetadataName + " NotIn kube-system,refit-system,payments", "sidecarset.refit.dev/injection NotIn disabled"}
	if !slices.Equal(text, want) || constraints.NamespaceSelector.MatchLabels["team"] != "a" {
		t.Errorf("namespaceSelector %v", constraints.NamespaceSelector)
	}
	if len(set.Spec.NamespaceSelector.MatchExpressions) > 0 {
		t.Error("the SidecarSet was changed")
	}
	if *compiled.Policy.Spec.FailurePolicy != "Ignore" || compiled.Binding.Spec.PolicyName != compiled.Policy.Name || compiled.Binding.Spec.ParamRef.Name != "log" {
		t.Errorf("%+v, %+v", compiled.Policy.Spec.FailurePolicy, compiled.Binding.Spec)
	}
	set.Spec.InjectionStrategy.FailurePolicy = v1beta1.InjectionFail
	if compiled, _ = policy.Compile(set, "refit-system", nil, time.Now()); *compiled.Policy.Spec.FailurePolicy != "Fail" {
		t.Error("failurePolicy Fail of the SidecarSet is not the policy's")
	}
}

// What is written as it is by default does not depend on the pod.
func TestWhatIsTheDefaultIsNoObstacle(t *testing.T) {
	t.Parallel()
	for what, manifest := range map[string]string{
		"conflictPolicy":          strings.Replace(simple, "engine: Policy", "engine: Policy, conflictPolicy: Fail", 1),
		"shareVolumePolicy":       strings.Replace(simple, "{name: agent,", "{name: agent, shareVolumePolicy: {type: disabled},", 1),
		"shareVolumeDevicePolicy": strings.Replace(simple, "{name: agent,", "{name: agent, shareVolumeDevicePolicy: {type: disabled},", 1),
		"upgradeStrategy":         strings.Replace(simple, "{name: agent,", "{name: agent, upgradeStrategy: {upgradeType: ColdUpgrade},", 1),
		"canary":                  strings.Replace(simple, "{name: log,", `{name: log, annotations: {apps.kruise.io/sidecarset-canary: "false"},`, 1),
	} {
		if _, errs := policy.Compile(sidecarSet(t, manifest), "refit-system", nil, time.Now()); len(errs) > 0 {
			t.Errorf("%s: %v", what, errs)
		}
	}
}

func TestThePolicyAndItsBinding(t *testing.T) {
	t.Parallel()
	compiled := compile(t, sidecarSet(t, strings.Replace(simple, "  namespace: shop\n", "", 1)), time.Now())
	allow := admissionregistrationv1.AllowAction
	want := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "refit-sidecarset-log"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: "refit-sidecarset-log", ParamRef: &admissionregistrationv1.ParamRef{Name: "log", ParameterNotFoundAction: &allow},
		},
	}
	if diff := cmp.Diff(want, compiled.Binding); diff != "" {
		t.Errorf("binding (-want +got):\n%s", diff)
	}
	p, scope := compiled.Policy, admissionregistrationv1.NamespacedScope
	if p.Kind != "MutatingAdmissionPolicy" || p.APIVersion != "admissionregistration.k8s.io/v1" || p.Name != "refit-sidecarset-log" || p.Spec.ReinvocationPolicy != admissionregistrationv1.NeverReinvocationPolicy {
		t.Errorf("%s %s %s, reinvocation %s", p.APIVersion, p.Kind, p.Name, p.Spec.ReinvocationPolicy)
	}
	if diff := cmp.Diff(&admissionregistrationv1.ParamKind{APIVersion: "apps.kruise.io/v1beta1", Kind: "SidecarSet"}, p.Spec.ParamKind); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	rules := []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"CREATE"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &scope},
	}}}
	if diff := cmp.Diff(rules, p.Spec.MatchConstraints.ResourceRules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if n := len(p.Spec.MatchConstraints.NamespaceSelector.MatchExpressions); n != 2 {
		t.Errorf("%d expressions of namespaces without one in the SidecarSet, want 2", n)
	}
}
