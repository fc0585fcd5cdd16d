package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// claims are the annotations by which a pod says that the SidecarSet has been injected.
func claims(set *v1beta1.SidecarSet) map[string]string {
	return map[string]string{
		v1beta1.AnnotationSidecarSetHash: `{"` + set.Name + `":"x"}`, v1beta1.AnnotationSidecarSetList: set.Name,
		v1beta1.AnnotationSidecarSetSkipped: `{"` + set.Name + `":"no"}`, v1beta1.AnnotationSidecarSetChecked: set.Name,
	}
}

// sidecarOf is a container of a pod without the mount of the service account's token, whose volume has a random name.
func sidecarOf(pod *corev1.Pod, name string) corev1.Container {
	c := containerOf(pod, name)
	c.VolumeMounts = nil
	return *c.DeepCopy()
}

// A pod that brings the container of a required sidecar itself, as if it had been injected, gets the sidecar of the SidecarSet.
func TestAContainerThatAPodBringsIsNotTheSidecar(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	set := s.sidecarSet("log", "injectionStrategy: {failurePolicy: Fail}, containers: [{name: log, "+sleeper+", env: [{name: PORT, value: '8080'}]}]")
	pod := func() *corev1.Pod { return selected("log", s.podOf("web", shell("app", obedient))) }
	s.knows(pod(), "log")
	clean := pod()
	s.check(s.Create(t.Context(), clean, client.DryRunAll), "create a pod without claims")

	for name, change := range map[string]func(*corev1.Container){
		"library and hook": func(c *corev1.Container) {
			c.Env = append([]corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/tmp/x.so"}}, c.Env...)
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "touch /tmp/x"}}}}
		},
		"huge argument": func(c *corev1.Container) { c.Args = []string{"1e300000000"} },
		"huge variable": func(c *corev1.Container) { c.Env[0].Value = "1e300000000" },
		"crash":         func(c *corev1.Container) { c.Env[0].Value = "1e2147483647" },
	} {
		forged := pod()
		forged.Annotations = claims(set)
		brought := sidecarOf(clean, "log")
		change(&brought)
		forged.Spec.Containers = append(forged.Spec.Containers, brought)
		begun := time.Now()
		s.check(s.Create(t.Context(), forged, client.DryRunAll), "create a pod that brings the sidecar: %s", name)
		if took := time.Since(begun); took > 3*time.Second { // the webhook's time-out is 5 s
			t.Errorf("%s: creation took %s", name, took)
		}
		if got, want := sidecarOf(forged, "log"), sidecarOf(clean, "log"); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: the sidecar of the SidecarSet (-) and what runs (+):\n%s", name, cmp.Diff(want, got))
		}
	}
}

// What other admission controllers add to a sidecar after the webhook stays, also in a pod from the manifest of another one.
func TestWhatOthersAddToASidecarStays(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "defaults"}}
	limits.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{"memory": resource.MustParse("64Mi")}}}
	s.check(s.Create(t.Context(), limits), "create LimitRange")
	manifests := strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: $NAMESPACE-identity}
spec:
  reinvocationPolicy: IfNeeded
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NAMESPACE}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{containers: object.spec.containers.map(c,
        Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: "IDENTITY", value: "x"}]})}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: $NAMESPACE-identity}
spec: {policyName: $NAMESPACE-identity}
`, "$NAMESPACE", s.namespace)
	t.Cleanup(func() {
		_, _ = s.kubectl(context.WithoutCancel(t.Context()), manifests, "delete", "--filename=-", "--ignore-not-found")
	})
	out, err := s.kubectl(t.Context(), manifests, "apply", "--filename=-")
	s.check(err, "apply policy: %s", out)
	set := s.sidecarSet("log", "injectionStrategy: {failurePolicy: Fail}, containers: [{name: log, "+sleeper+"}]")
	pod := selected("log", s.podOf("web", shell("app", obedient)))
	pod.Spec.AutomountServiceAccountToken = nil // the API server adds the mount of the token
	s.knows(pod, "log")
	s.awaitDryRun(pod, "the other policy", func(p *corev1.Pod) bool { return envOf(p, "log", "IDENTITY") == "x" })
	web := s.start(pod)

	for _, name := range []string{"again", "and-again"} { // the manifest of a manifest, too
		web = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: name, Labels: web.Labels, Annotations: web.Annotations}, Spec: web.Spec}
		web.Spec.NodeName = ""
		s.check(s.Create(t.Context(), web, client.DryRunAll), "create a pod from the manifest")
		log := containerOf(web, "log")
		if memory := log.Resources.Limits.Memory().String(); envOf(web, "log", "IDENTITY") != "x" || memory != "64Mi" || len(log.VolumeMounts) == 0 {
			t.Errorf("pod %s: variable %q, memory %s, mounts %v", name, envOf(web, "log", "IDENTITY"), memory, log.VolumeMounts)
		}
		if list := web.Annotations[v1beta1.AnnotationSidecarSetList]; list != set.Name {
			t.Errorf("pod %s: injected: %s", name, list)
		}
	}
}
