package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/revision"
)

// apply has the API server's code evaluate a policy for a pod.
func apply(t *testing.T, p *admissionregistrationv1.MutatingAdmissionPolicy, set *v1beta1.SidecarSet, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		t.Fatal(err)
	}
	declared := cel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for i := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: p.Spec.Variables[i].Name, Expression: p.Spec.Variables[i].Expression})
	}
	compiler.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	bound := cel.OptionalVariableBindings{VersionedParams: &unstructured.Unstructured{Object: content}}
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	attributes := func() *admission.VersionedAttributes {
		return &admission.VersionedAttributes{
			Attributes: admission.NewAttributesRecord(pod, nil, kind, "shop", pod.Name, resource, "", admission.Create, nil, false, nil), VersionedKind: kind,
			VersionedObject: admission.NewLazyObject(pod.DeepCopy()),
		}
	}
	var conditions []cel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, declared, environment.StoredExpressions), p.Spec.FailurePolicy, "policy", "mutate", p.Name)
	matched := matcher.Match(t.Context(), attributes(), bound.VersionedParams, nil)
	if matched.Error != nil {
		t.Fatal(matched.Error)
	}
	if !matched.Matches {
		return pod
	}
	declared.HasPatchTypes = true
	ctx := compiler.CreateContext(t.Context())
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, mutation := range p.Spec.Mutations {
		evaluator := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}, declared, environment.StoredExpressions)
		changed, err := patch.NewJSONPatcher(evaluator).Patch(ctx, patch.Request{
			MatchedResource: schema.GroupVersionResource(resource), VersionedAttributes: attributes(),
			ObjectInterfaces: admission.NewObjectInterfacesFromScheme(scheme), OptionalVariables: bound,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatalf("%v in %s", err, mutation.JSONPatch.Expression)
		}
		var ok bool
		if pod, ok = changed.(*corev1.Pod); !ok {
			t.Fatalf("%T", changed)
		}
	}
	return pod
}

// injected is the pod that the webhook would answer with.
func injected(t *testing.T, set *v1beta1.SidecarSet, pod *corev1.Pod, now time.Time) *corev1.Pod {
	t.Helper()
	expected, err := revision.New(set, "refit-system", 0)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := inject.Compile(set, expected.Name)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	result, err := inject.Apply(raw, inject.Plan{Sets: []*inject.Set{compiled}}, now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(result.Patch)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = operations.Apply(raw); err != nil {
		t.Fatal(err)
	}
	after := &corev1.Pod{}
	if err := json.Unmarshal(raw, after); err != nil {
		t.Fatal(err)
	}
	return after
}

// What the policy injects is what the webhook injects, whatever the pod has already.
func TestThePolicyInjectsWhatTheWebhookInjects(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sets := map[string]string{
		"all kinds":  simple,
		"containers": "metadata: {name: log, resourceVersion: '7'}\nspec: {selector: {matchLabels: {app: web}}, injectionStrategy: {engine: Policy}, containers: [{name: agent, image: agent:1, livenessProbe: {httpGet: {port: http, path: '/x'}, periodSeconds: 3}, securityContext: {runAsNonRoot: true, runAsUser: 65532}, resources: {limits: {cpu: 100m, memory: 1Gi}}}]}",
		"init":       "metadata: {name: log, resourceVersion: '7'}\nspec: {selector: {matchLabels: {app: web}}, injectionStrategy: {engine: Policy}, initContainers: [{name: native, image: n:1, restartPolicy: Always, env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}",
	}
	pods := map[string]string{
		"bare":    `metadata: {name: web, namespace: shop, labels: {app: web}}` + "\nspec: {containers: [{name: app, image: a:1}]}",
		"several": `metadata: {name: web, namespace: shop, annotations: {a: b}}` + "\nspec: {initContainers: [{name: setup, image: s:1}], containers: [{name: app, image: a:1}, {name: app2, image: a:2}], volumes: [{name: data, emptyDir: {}}], imagePullSecrets: [{name: pull}, {name: other}]}",
		"mirror":  `metadata: {name: web, namespace: shop, annotations: {kubernetes.io/config.mirror: x}}` + "\nspec: {containers: [{name: app, image: a:1}]}",
	}
	for setName, manifest := range sets {
		for podName, text := range pods {
			t.Run(setName+"/"+podName, func(t *testing.T) {
				t.Parallel()
				set := sidecarSet(t, manifest)
				pod := &corev1.Pod{}
				if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
					t.Fatal(err)
				}
				pod.APIVersion, pod.Kind = "v1", "Pod"
				compiled := compile(t, set, now)
				got, want := apply(t, compiled.Policy, set, pod), pod
				if podName != "mirror" {
					want = injected(t, set, pod, now)
				}
				for _, p := range []*corev1.Pod{got, want} {
					p.TypeMeta = corev1.Pod{}.TypeMeta
					normalize(t, p)
				}
				if !equality.Semantic.DeepEqual(got, want) {
					t.Errorf("policy (-) and webhook (+):\n%s", cmp.Diff(got, want))
				}
				if want == pod && len(got.Spec.Containers) != 1 {
					t.Error("a pod that is not to be changed was")
				}
			})
		}
	}
}

// normalize writes the JSON of annotations in one way.
func normalize(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	for key, value := range pod.Annotations {
		if !strings.HasPrefix(value, "{") {
			continue
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(value), &object); err != nil {
			t.Fatalf("annotation %s: %v: %s", key, err, value)
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		pod.Annotations[key] = string(text)
	}
}

// Nothing is injected when the SidecarSet is paused, or left to the webhook again.
func TestThePolicyFollowsTheSidecarSet(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, simple)
	compiled := compile(t, set, time.Now())
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	for name, change := range map[string]func(*v1beta1.SidecarSet){
		"paused":  func(s *v1beta1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true },
		"webhook": func(s *v1beta1.SidecarSet) { s.Spec.InjectionStrategy.Engine = v1beta1.EngineWebhook },
		"default": func(s *v1beta1.SidecarSet) { s.Spec.InjectionStrategy.Engine = "" },
		"deleted": func(s *v1beta1.SidecarSet) { s.DeletionTimestamp = new(metav1.Now()) },
	} {
		changed := set.DeepCopy()
		change(changed)
		if got := apply(t, compiled.Policy, changed, pod); len(got.Spec.Containers) != 1 {
			t.Errorf("%s: injected", name)
		}
	}
	if got := apply(t, compiled.Policy, set, pod); len(got.Spec.Containers) != 3 {
		t.Errorf("%d containers", len(got.Spec.Containers))
	}
}

// A pod that has the sidecars of another policy keeps what it carries of them.
func TestThePolicyAddsToWhatOthersHaveInjected(t *testing.T) {
	t.Parallel()
	set := sidecarSet(t, simple)
	compiled := compile(t, set, time.Now())
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	pod.Annotations = map[string]string{
		v1beta1.AnnotationSidecarSetList: "abc", v1beta1.AnnotationSidecarSetHash: `{"abc":{"hash":"x"}}`, v1beta1.AnnotationSidecarSetHashWithoutImage: "{}",
	}
	got := apply(t, compiled.Policy, set, pod)
	hashes := revision.HashesOf(&set.Spec)
	if mine := annotation.Of(got, "log"); mine == nil || mine.Hash != hashes.Full || mine.WithoutImage != hashes.WithoutImage {
		t.Errorf("got %+v of %v", mine, got.Annotations)
	}
	if other := annotation.Of(got, "abc"); other == nil || other.Hash != "x" || !slices.Equal(annotation.Names(got), []string{"abc", "log"}) {
		t.Errorf("got %+v of %v", other, got.Annotations)
	}
}
