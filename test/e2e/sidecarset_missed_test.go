package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// Pods that are older than their SidecarSet are counted with the reason and, when that is asked for, evicted one at a time
// within their PodDisruptionBudget.
func TestPodsThatWereNotInjectedAreReplaced(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const n = 3
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	pod := selected("log", s.podOf("", shell("app", obedient)))
	object.Spec.Replicas, object.Spec.Selector = new(int32(n)), &metav1.LabelSelector{MatchLabels: pod.Labels}
	object.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
	s.check(s.Create(t.Context(), object), "create Deployment")
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: object.Spec.Selector}
	s.check(s.Create(t.Context(), budget), "create PodDisruptionBudget")
	s.await("pods", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(object), object)
		return object.Status.ReadyReplicas == n, err
	})
	set := s.sidecarSet("log", "containers: [{name: log, "+sleeper+"}]")
	s.await("the pods to be counted", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(set), set)
		c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionDegraded)
		return c != nil && c.Reason == "NotInjected" && strings.Contains(c.Message, "older than the SidecarSet") && set.Status.NotInjectedPods == n, err
	})
	s.knows(selected("log", s.podOf("probe", shell("app", obedient))), "log")
	s.run("create", "rolebinding", "evict", "--clusterrole=refit-pod-evicter", "--serviceaccount="+systemNamespace+":refit-manager")
	s.run("patch", "sidecarset", set.Name, "--type=merge", `--patch={"spec":{"injectionStrategy":{"repairPolicy":"Evict"}}}`)
	fewest := int32(n)
	s.await("all pods to be injected", func(ctx context.Context) (bool, error) {
		if err := s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		fewest = min(fewest, object.Status.ReadyReplicas)
		err := s.Get(ctx, client.ObjectKeyFromObject(set), set)
		return set.Status.NotInjectedPods == 0 && set.Status.UpdatedReadyPods == n, err
	})
	if fewest < n-1 {
		t.Errorf("only %d of %d pods were ready at a time", fewest, n)
	}
	s.awaitEvent("EvictedForInjection", set.Name, "older than the SidecarSet")
}

// A SidecarSet that was compiled into a policy is injected while no refit-manager runs, as the webhook injects it.
func TestCompiledSidecarSetIsInjectedWithoutTheManager(t *testing.T) {
	s := newFixture(t)
	const spec = `
  initContainers: [{name: native, restartPolicy: Always, ` + sleeper + `}],
  containers: [{name: front, ` + sleeper + `, volumeMounts: [{name: spool, mountPath: /spool}], readinessProbe: {exec: {command: ["true"]}}},
    {name: back, ` + sleeper + `, podInjectPolicy: AfterAppContainer, env: [{name: TEXT, value: "it's \"quoted\""}]}],
  volumes: [{name: spool, emptyDir: {}}]`
	set := s.sidecarSet("log", spec)
	pod := func(name string) *corev1.Pod { return selected("log", s.podOf(name, shell("app", obedient))) }
	s.knows(pod("web"), "front")
	byWebhook := pod("web")
	s.check(s.Create(t.Context(), byWebhook, client.DryRunAll), "create pod with the webhook")

	s.run("patch", "sidecarset", set.Name, "--type=merge", `--patch={"spec":{"injectionStrategy":{"engine":"Policy","failurePolicy":"Fail"}}}`)
	manifests := s.compile(set)
	out, err := s.kubectl(t.Context(), manifests, "apply", "--filename=-")
	s.check(err, "apply policy: %s", out)
	t.Cleanup(func() {
		_, _ = s.kubectl(context.WithoutCancel(t.Context()), manifests, "delete", "--filename=-", "--ignore-not-found")
	})
	s.scaleManager(0)
	var byPolicy *corev1.Pod
	s.await("injection by the policy", func(ctx context.Context) (bool, error) {
		byPolicy = pod("web")
		err := s.Create(ctx, byPolicy, client.DryRunAll)
		return err == nil && len(byPolicy.Spec.Containers) == 3, nil
	})
	if !equality.Semantic.DeepEqual(byPolicy.Spec, byWebhook.Spec) {
		t.Errorf("policy (-) and webhook (+):\n%s", cmp.Diff(byPolicy.Spec, byWebhook.Spec))
	}
	for _, key := range []string{v1beta1.AnnotationSidecarSetHash, v1beta1.AnnotationSidecarSetHashWithoutImage, v1beta1.AnnotationSidecarSetList} {
		if got, want := withoutTimes(byPolicy.Annotations[key]), withoutTimes(byWebhook.Annotations[key]); got != want || got == "" {
			t.Errorf("annotation %s is %s, by the webhook %s", key, got, want)
		}
	}
	web := s.start(pod("web"))
	if got := s.exec("web", "back", "echo $TEXT"); strings.TrimSpace(got) != `it's "quoted"` {
		t.Errorf("variable %s", got)
	}
	if other := s.podOf("other", shell("app", obedient)); s.Create(t.Context(), other, client.DryRunAll) != nil || len(other.Spec.Containers) != 1 {
		t.Errorf("a pod that is not selected has containers %v", containerNames(other))
	}
	if got := containerNames(web); len(got) != 4 {
		t.Errorf("containers %v", got)
	}
	s.policyBelievesNoPod(set, pod, web)
}

// policyBelievesNoPod: a pod that says that it has been injected is injected all the same, and one from the manifest of an injected
// one is like it, although the SidecarSet is required and nobody but the API server could have looked at them.
func (s *fixture) policyBelievesNoPod(set *v1beta1.SidecarSet, pod func(string) *corev1.Pod, web *corev1.Pod) {
	s.t.Helper()
	forged := pod("forged")
	forged.Annotations = claims(set)
	forged.Spec.Containers = append(forged.Spec.Containers, corev1.Container{
		Name: "front", Image: "docker.io/library/busybox:1.36", Command: []string{"sleep", "1d"}, Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}},
	})
	s.check(s.Create(s.t.Context(), forged, client.DryRunAll), "create a pod that brings a sidecar")
	if got, want := sidecarOf(forged, "front"), sidecarOf(web, "front"); !equality.Semantic.DeepEqual(got, want) {
		s.t.Errorf("the sidecar of the policy (-) and what runs (+):\n%s", cmp.Diff(want, got))
	}
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: "again", Labels: web.Labels, Annotations: web.Annotations}, Spec: web.Spec}
	again.Spec.NodeName = ""
	s.check(s.Create(s.t.Context(), again, client.DryRunAll), "create a pod from the manifest")
	if !slices.Equal(containerNames(again), containerNames(web)) || len(again.Spec.Volumes) != len(web.Spec.Volumes) {
		s.t.Errorf("a pod from the manifest has %v, not %v", containerNames(again), containerNames(web))
	}
}

// compile is refit-manager sidecarset compile of the stored SidecarSet, in a pod of refit-manager.
func (s *fixture) compile(set *v1beta1.SidecarSet) string {
	s.t.Helper()
	stored := s.run("get", "sidecarset", set.Name, "--output=yaml")
	out, err := s.kubectl(s.t.Context(), stored, "exec", "--stdin", "deployment/refit-manager", "--namespace", systemNamespace, "--",
		"/refit-manager", "sidecarset", "compile", "--filename=-")
	s.check(err, "compile SidecarSet: %s", out)
	return out
}

// withoutTimes is an annotation without the time of the injection.
func withoutTimes(text string) string {
	before, rest, found := strings.Cut(text, `"updateTimestamp":"`)
	if !found {
		return text
	}
	_, after, _ := strings.Cut(rest, `"`)
	return before + withoutTimes(after)
}
