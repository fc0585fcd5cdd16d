package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	compiled, errs := policy.Compile(set, "refit-system", now)
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
		"spec.selector":                                   with("  selector: {matchLabels: {app: web}}\n", ""),
		"spec.injectionStrategy.engine":                   with("engine: Policy", "engine: Webhook"),
		"spec.injectionStrategy.revision":                 with("engine: Policy", "engine: Policy, revision: {customVersion: a}"),
		"spec.injectionStrategy.conflictPolicy":           with("engine: Policy", "engine: Policy, conflictPolicy: KeepPod"),
		"spec.injectionStrategy.allowedPodOverrides":      with("engine: Policy", "engine: Policy, allowedPodOverrides: [OptOut]"),
		"spec.patchContainers":                            simple + "  patchContainers: [{env: [{name: A, value: b}]}]\n",
		"spec.patchPodMetadata":                           simple + "  patchPodMetadata: [{annotations: {a: b}}]\n",
		"spec.podVolumes":                                 simple + "  podVolumes: [data]\n",
		"spec.initContainers[0].shareVolumePolicy.type":   with("{name: native,", "{name: native, shareVolumePolicy: {type: enabled},"),
		"spec.containers[0].upgradeStrategy.upgradeType":  with("{name: agent,", "{name: agent, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e},"),
		"spec.containers[0].shareVolumeDevicePolicy.type": with("{name: agent,", "{name: agent, shareVolumeDevicePolicy: {type: enabled},"),
		"spec.containers[1].transferEnv":                  with("{name: back,", "{name: back, transferEnv: [{sourceContainerName: app, envName: A}],"),
		"spec.containers[1].resourcesPolicy":              with("{name: back,", "{name: back, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu}}},"),
		"spec.containers[0].futureField":                  with("{name: agent,", "{name: agent, futureField: {a: b},"),
		"spec.containers[1].versionLabel":                 with("{name: back,", "{name: back, versionLabel: v,"),
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			_, errs := policy.Compile(sidecarSet(t, manifest), "refit-system", time.Now())
			if len(errs) != 1 || errs[0].Field != field {
				t.Errorf("got %v", errs)
			}
		})
	}
}

func TestThePolicySelectsAsTheWebhookDoes(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, strings.Replace(simple, "  namespace: shop\n", "  namespace: shop\n  namespaceSelector: {matchLabels: {team: a}}\n", 1))
	compiled := compile(t, set, time.Now())
	constraints := compiled.Policy.Spec.MatchConstraints
	if got := constraints.ObjectSelector.MatchLabels["app"]; got != "web" {
		t.Errorf("objectSelector %v", constraints.ObjectSelector)
	}
	var text []string
	for _, e := range constraints.NamespaceSelector.MatchExpressions {
		text = append(text, e.Key+" "+string(e.Operator)+" "+strings.Join(e.Values, ","))
	}
	want := []string{corev1.LabelMetadataName + " In shop", corev1.LabelMetadataName + " NotIn kube-system,refit-system", "sidecarset.refit.dev/injection NotIn disabled"}
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
	if compiled, _ = policy.Compile(set, "refit-system", time.Now()); *compiled.Policy.Spec.FailurePolicy != "Fail" {
		t.Error("failurePolicy Fail of the SidecarSet is not the policy's")
	}
}
