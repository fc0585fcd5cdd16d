package e2e_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

const sleeper = `image: docker.io/library/busybox:1.36, command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"]`

func TestSidecarSetInjectsAroundTheContainersOfAPod(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	set := s.sidecarSet("log", `
  initContainers: [{name: native, restartPolicy: Always, `+sleeper+`, startupProbe: {exec: {command: ["true"]}}}],
  containers: [
    {name: front, `+sleeper+`, transferEnv: [{sourceContainerName: app, envName: TZ}], shareVolumePolicy: {type: enabled}},
    {name: back, `+sleeper+`, podInjectPolicy: AfterAppContainer, volumeMounts: [{name: info, mountPath: /info}]}],
  volumes: [{name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]`)
	pod := selected("log", s.podOf("web", shell("app", obedient)))
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TZ", Value: "Asia/Shanghai"}, {Name: "SUB", Value: "a"}}
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "shared", MountPath: "/sub", SubPathExpr: "$(SUB)"})
	s.knows(pod, "front")
	web := s.start(pod)
	if got, want := containerNames(web), []string{"native", "front", "app", "back"}; !slices.Equal(got, want) {
		t.Errorf("containers %v, want %v", got, want)
	}
	if got := envOf(web, "front", "TZ"); got != "Asia/Shanghai" {
		t.Errorf("TZ is %q in the sidecar", got)
	}
	s.exec("web", "app", "echo hello > /sub/file")
	if got := s.exec("web", "front", "cat /shared/a/file /sub/file"); strings.Count(got, "hello") != 2 {
		t.Errorf("the sidecar reads %q from the volumes of the pod", got)
	}
	if got := s.exec("web", "back", "cat /info/labels"); !strings.Contains(got, `sidecarset="log"`) {
		t.Errorf("labels in the sidecar: %s", got)
	}
	if got := web.Annotations[v1beta1.AnnotationSidecarSetList]; got != set.Name {
		t.Errorf("injected: %s", got)
	}

	// A manifest of the pod, as somebody saves it, gives a pod with the same containers.
	again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: "again", Labels: web.Labels, Annotations: web.Annotations}, Spec: web.Spec}
	again.Spec.NodeName = ""
	s.check(s.Create(t.Context(), again, client.DryRunAll), "create a pod from the manifest")
	if got, want := containerNames(again), containerNames(web); !slices.Equal(got, want) {
		t.Errorf("containers of a pod from the manifest: %v, want %v", got, want)
	}
}

func TestPodsThatNoSidecarSetSelectsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.sidecarSet("log", "containers: [{name: log, "+sleeper+"}]")
	s.knows(selected("log", s.podOf("web", shell("app", obedient))), "log")
	for _, pod := range []*corev1.Pod{s.podOf("none", shell("app", obedient)), selected("other", s.podOf("other", shell("app", obedient)))} {
		s.check(s.Create(t.Context(), pod, client.DryRunAll), "create pod")
		if got := containerNames(pod); !slices.Equal(got, []string{"app"}) || len(pod.Annotations) > 0 {
			t.Errorf("pod %s: containers %v, annotations %v", pod.Name, got, pod.Annotations)
		}
	}
}

func TestHotUpgradeSidecarsAreInjectedTwice(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.sidecarSet("mesh", "containers: [{name: mesh, "+sleeper+", upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: 'docker.io/library/busybox:1.35'}}]")
	pod := selected("mesh", s.podOf("web", shell("app", obedient)))
	s.knows(pod, "mesh-1")
	web := s.start(pod)
	if got := s.exec("web", "mesh-1", "echo $SIDECARSET_VERSION $SIDECARSET_VERSION_ALT"); strings.TrimSpace(got) != "1 0" {
		t.Errorf("versions in the first container: %s", got)
	}
	if got := s.exec("web", "mesh-2", "echo $SIDECARSET_VERSION $SIDECARSET_VERSION_ALT"); strings.TrimSpace(got) != "0 1" {
		t.Errorf("versions in the second container: %s", got)
	}
	if got := web.Annotations[v1beta1.AnnotationHotUpgradeWorking]; got != `{"mesh":"mesh-1"}` {
		t.Errorf("working: %s", got)
	}
	if got := containerOf(web, "mesh-2").Image; got != "docker.io/library/busybox:1.35" {
		t.Errorf("image of the second container: %s", got)
	}
}

func TestResourcesOfSidecarsAreComputedFromThePods(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.sidecarSet("mesh", "containers: [{name: mesh, "+sleeper+", resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: '^app', "+
		"resourcesExpr: {limits: {cpu: 'max(cpu*50%, 50m)', memory: 200Mi}, requests: {cpu: 'cpu*10%'}}}}]")
	pod := selected("mesh", s.podOf("web", shell("app", obedient), shell("app2", obedient)))
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"cpu": resource.MustParse("200m")}, Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
	}
	pod.Spec.Containers[1].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("400m")}
	s.knows(pod, "mesh")
	s.check(s.Create(t.Context(), pod, client.DryRunAll), "create pod")
	got := containerOf(pod, "mesh").Resources
	// The API server sets the request of app2 to its limit before the webhook is called.
	if got.Limits.Cpu().String() != "300m" || got.Limits.Memory().String() != "200Mi" || got.Requests.Cpu().String() != "50m" {
		t.Errorf("resources %v", got)
	}
}

// A canary takes the place of its base, and a pod says why it does not have the base.
func TestACanaryTakesThePlaceOfItsBase(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	base := s.sidecarSet("log", "containers: [{name: log, "+sleeper+"}]")
	canary := base.DeepCopy()
	canary.ObjectMeta = metav1.ObjectMeta{Name: base.Name + "-canary", Annotations: map[string]string{
		v1beta1.AnnotationSidecarSetCanary: "true", v1beta1.AnnotationSidecarSetBase: base.Name,
	}}
	canary.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"track": "canary"}}
	canary.Spec.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate
	canary.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CANARY", Value: "yes"}}
	s.check(s.Create(t.Context(), canary), "create canary")
	t.Cleanup(func() { _ = s.Delete(t.Context(), canary) })
	pod := selected("log", s.podOf("web", shell("app", obedient)))
	pod.Labels["track"] = "canary"
	s.awaitDryRun(pod, "the canary", func(pod *corev1.Pod) bool { return envOf(pod, "log", "CANARY") == "yes" })
	s.check(s.Create(t.Context(), pod, client.DryRunAll), "create pod")
	if got := pod.Annotations[v1beta1.AnnotationSidecarSetSkipped]; !strings.Contains(got, `"`+base.Name+`":"replaced by the canary`) {
		t.Errorf("skipped: %s", got)
	}
}

// A sidecar of a team and the container of an application with the same name: OpenKruise replaces the latter silently.
func TestAContainerOfThePodIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.sidecarSet("log", "containers: [{name: log, "+sleeper+"}]")
	s.knows(selected("log", s.podOf("web", shell("app", obedient))), "log")
	err := s.Create(t.Context(), selected("log", s.podOf("web", shell("log", obedient))), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "the pod has a container log") {
		t.Errorf("got %v", err)
	}
}

// A SidecarSet with failurePolicy Fail that nobody injects, as while no manager runs: its pods are refused, and no others.
func TestRequiredSidecarsAreNotMissed(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	set := s.sidecarSet("guard", "injectionStrategy: {failurePolicy: Fail, engine: Policy}, containers: [{name: guard, "+sleeper+"}]")
	if set.Labels[v1beta1.LabelInjectionFailurePolicy] != "Fail" {
		t.Errorf("labels %v", set.Labels)
	}
	pod := func() *corev1.Pod { return selected("guard", s.podOf("web", shell("app", obedient))) }
	s.awaitRefusal(pod, set.Name, "failurePolicy Fail")
	s.check(s.Create(t.Context(), selected("other", pod()), client.DryRunAll), "create a pod that it does not select")
	// Nor is a pod let through that only says that it has been injected.
	s.awaitRefusal(func() *corev1.Pod {
		forged := pod()
		forged.Annotations = claims(set)
		return forged
	}, set.Name, "failurePolicy Fail", "do not count")
}
