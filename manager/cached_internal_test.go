package manager

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/sidecarset/annotation"
)

// allFeatures is a configuration with everything that reads pods from the cache.
var allFeatures = Config{
	RefusePods: true, ContainerRecreateRequests: true, RestartRollouts: true, InPlaceUpdates: true, SidecarSetRollout: true, PodProbes: true,
}

// Whoever may create pods in one namespace must not fill the manager's memory with them.
func TestWhatIsCachedOfAPodIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 240<<10)
	many := func(n int) map[string]string {
		texts := map[string]string{}
		for i := range n {
			texts[fmt.Sprintf("example.com/%060d", i)] = "x"
		}
		return texts
	}
	injected := []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}
	for name, grow := range map[string]func(*corev1.Pod){
		"annotation of sidecars":         func(p *corev1.Pod) { p.Annotations["kruise.io/sidecarset-x"] = long },
		"record of updates":              func(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = long },
		"report of refit-daemon, forged": func(p *corev1.Pod) { p.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = long },
		"keys of annotations":            func(p *corev1.Pod) { p.Annotations = many(3000) },
		"labels":                         func(p *corev1.Pod) { p.Labels = many(3000) },
		"variables of an injected one": func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{injected[0], {Name: "A", Value: long}}
		},
		"arguments of an injected one": func(p *corev1.Pod) { p.Spec.Containers[0].Env, p.Spec.Containers[0].Args = injected, []string{long} },
		"containers":                   func(p *corev1.Pod) { p.Spec.Containers = make([]corev1.Container, 10000) },
		"named ports":                  func(p *corev1.Pod) { p.Spec.Containers[0].Ports = ports(10000) },
		"owner":                        func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: long, Controller: new(true)}} },
		"readiness gates":              func(p *corev1.Pod) { p.Spec.ReadinessGates = make([]corev1.PodReadinessGate, 10000) },
		"written by somebody as the manager": func(p *corev1.Pod) {
			p.Annotations["a"] = long
			p.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:a":{}}}}`),
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "tenant", Name: "p", UID: "u", Labels: map[string]string{"app": "web"},
					Annotations: map[string]string{v1beta1.AnnotationSidecarSetList: "log", v1beta1.AnnotationSidecarSetHash: `{"log":{"hash":"x"}}`},
				},
				Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "app"}}},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionTrue},
					{Type: v1beta1.ConditionSidecarSetUpgradable, Status: corev1.ConditionFalse, Message: `{"log":false}`},
				}},
			}
			grow(pod)
			got := cachedPods(allFeatures).Of(pod)
			if size := trim.Size(got); size > trim.MaxPod {
				t.Errorf("%d bytes of it are cached", size)
			}
			if got.Name != "p" || got.Spec.NodeName != "n" || len(got.Status.Conditions) != 2 {
				t.Errorf("what names it and says whether it serves and can be updated is lost: %v", got)
			}
			if pod.Annotations[v1beta1.AnnotationSidecarSetList] != "" && got.Spec.Containers == nil && (got.Annotations[v1beta1.AnnotationSidecarSetList] != "log" || annotation.Of(got, "log") != nil) {
				t.Errorf("it has to count as injected, and not as updated: %v", got.Annotations)
			}
		})
	}
}

func ports(n int) []corev1.ContainerPort {
	list := make([]corev1.ContainerPort, n)
	for i := range list {
		list[i] = corev1.ContainerPort{Name: fmt.Sprint(i), ContainerPort: 1}
	}
	return list
}

// A field that only a feature needs which is switched off takes no memory.
func TestTheCacheKeepsWhatTheEnabledFeaturesNeed(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kruise.io/sidecarset-a": strings.Repeat("x", 300)}}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1", Ports: []corev1.ContainerPort{{Name: "http"}}}}
	pod.Status.PodIP = "10.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	for name, tt := range map[string]struct {
		enable func(*Config)
		has    func(*corev1.Pod) bool
	}{
		"callers":  {func(c *Config) { c.RefusePods = true }, func(p *corev1.Pod) bool { return p.Status.PodIP != "" }},
		"requests": {func(c *Config) { c.ContainerRecreateRequests = true }, func(p *corev1.Pod) bool { return len(p.Status.Conditions) > 0 }},
		"rollouts": {func(c *Config) { c.RestartRollouts = true }, func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].State.Running != nil }},
		"policies": {func(c *Config) { c.InPlaceUpdates = true }, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image != "" }},
		"sidecars": {func(c *Config) { c.SidecarSetRollout = true }, func(p *corev1.Pod) bool { return p.Annotations["kruise.io/sidecarset-a"] != "" }},
		"probes":   {func(c *Config) { c.PodProbes = true }, func(p *corev1.Pod) bool { return len(p.Spec.Containers[0].Ports) > 0 }},
	} {
		var enabled Config
		tt.enable(&enabled)
		if tt.has(cachedPods(Config{}).Of(pod.DeepCopy())) || !tt.has(cachedPods(enabled).Of(pod.DeepCopy())) || !tt.has(cachedPods(allFeatures).Of(pod.DeepCopy())) {
			t.Errorf("%s: kept without the feature, or not with it", name)
		}
	}
}
