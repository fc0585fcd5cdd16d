package e2e_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

const followed = "--timeout=3m"

func TestWorkloadIsUpdatedByOneCommand(t *testing.T) {
	t.Parallel()
	forKinds(t, allKinds, func(t *testing.T, w *workload) {
		before := w.webs()
		out := w.command(0, []string{"would be created. It stays", "restart app", newImage}, "set", "image", w.ref, "app="+newImage, "--dry-run")
		for i := range before {
			if !strings.Contains(out, before[i].Name) {
				t.Errorf("pod %s is not in:\n%s", before[i].Name, out)
			}
		}
		w.command(0, []string{"InPlaceUpdatePolicy web created. It stays", "pods have the template and are available"}, "set", "image", w.ref, "app="+newImage, followed)
		pods := w.updated(before, newImage, 1)
		w.command(0, []string{"UpdatedInPlace", "by InPlaceUpdatePolicy web", "image " + image + " -> " + newImage}, "why", pods[0].Name)
		w.command(0, []string{pods[0].Name, "new instance started"}, "timeline", "inplaceupdatepolicy/web")
		w.command(0, []string{"inplaceupdatepolicy/web", w.ref}, "status")
		w.command(0, []string{"present", newImage, image}, "rollout", "history", w.ref)
		w.command(0, []string{"pods have the template and are available"}, "rollout", "status", "inplaceupdatepolicy/web", followed)
		w.command(0, []string{"back to revision 1"}, "rollout", "undo", w.ref, followed)
		w.updated(pods, image, 1)
	})
}

// kubectl says that a held StatefulSet is complete.
func TestStatusOfARolloutIsTrueForAHeldStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "StatefulSet", "serviceName: web, replicas: 2,")
	w.follows(", paused: true")
	w.run("set", "image", w.ref, "app="+newImage)
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionUnknown, refitv1alpha1.ReasonPaused)
	w.command(124, []string{"0 of 2 pods updated and ready", "kubectl refit rollout resume statefulset/web"}, "rollout", "status", w.ref, "--timeout=2s")
	w.command(0, []string{"InPlaceUpdatePolicy web", "Paused", "next", "waiting", "web-1", "web-0"}, "why", w.ref)
	w.command(0, []string{"resumed"}, "rollout", "resume", w.ref)
	w.command(0, []string{"2 of 2 pods have the template"}, "rollout", "status", w.ref, followed)
}

func TestCanaryIsPromotedByACommand(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	before := w.ready(3)
	w.command(0, []string{"1 of 3 pods have the template and are available; the update pauses", "kubectl refit rollout promote deployment/web"},
		"set", "image", w.ref, "app="+newImage, "--canary=1", followed)
	if got := imagesOf(w.ready(3)); count(got, newImage) != 1 {
		t.Errorf("images %v, want one %s", got, newImage)
	}
	w.command(0, []string{"step 1 of 1 promoted"}, "rollout", "promote", w.ref)
	w.command(0, []string{"3 of 3 pods have the template"}, "rollout", "status", w.ref, followed)
	w.updated(before, newImage, 1)
}

func TestABadImageIsTakenBackByACommand(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	before := w.ready(3)
	w.follows(", progressDeadlineSeconds: 15, prePullPolicy: Never")
	w.command(1, []string{"PodsFailed", "kubectl refit why web-", "kubectl refit rollout undo deployment/web"}, "set", "image", w.ref, "app="+missingImage, followed)
	w.refusedRun("error:", "rollout", "undo", w.ref)
	w.command(0, []string{"3 of 3 pods have the template"}, "rollout", "undo", w.ref, followed)
	w.keeps(before)
	if got := imagesOf(w.ready(3)); count(got, image) != 3 {
		t.Errorf("images %v", got)
	}
}

// Without its owner's hold the workload would be rolled out by its own controller.
func TestTheCommandChangesAWorkloadOfItsOwnerOnlyWhileHeld(t *testing.T) {
	t.Parallel()
	forKinds(t, map[string]string{"Deployment": "replicas: 2,", "StatefulSet": "serviceName: web, replicas: 2,"}, func(t *testing.T, w *workload) {
		before := w.webs()
		w.policy(", holdPolicy: ByOwner")
		w.command(2, []string{"has holdPolicy ByOwner and its owner does not hold it"}, "set", "image", w.ref, "app="+newImage, followed)
		w.settled()
		w.keeps(before)
		w.patches(ownHold[w.kind])
		w.settled()
		w.command(0, []string{"pods have the template and are available"}, "set", "image", w.ref, "app="+newImage, followed)
		pods := w.updatedAndHeld(before, newImage)
		w.command(0, []string{"back to revision 1"}, "rollout", "undo", w.ref, followed)
		w.updatedAndHeld(pods, image)
	})
}

// Resources are changed without a restart. A variable that takes its value from an annotation needs one, and only of its container.
func TestResourcesAndVariablesOfAWorkloadAreSet(t *testing.T) {
	t.Parallel()
	w := &workload{fixture: newFixture(t), kind: "Deployment", ref: "deployment/web"}
	w.input(strings.NewReplacer(
		"{labels: {app: web}}", "{labels: {app: web}, annotations: {level: info}}",
		"{name: app,", `{name: app, resources: {requests: {cpu: 10m}, limits: {cpu: 200m}}, `+
			`env: [{name: LEVEL, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['level']"}}}],`,
	).Replace(w.manifest("web", "replicas: 2,", image)), "apply")
	w.rolledOut()
	before := w.ready(2)
	w.command(0, []string{"InPlaceUpdatePolicy web created", "app: limits.cpu 200m -> 300m", "2 of 2 pods have the template and are available"},
		"set", "resources", w.ref, "--container=app", "--requests=cpu=20m", "--limits=cpu=300m", followed)
	w.keeps(before)
	for i := range before {
		w.awaitPod(before[i].Name, "to run with the limit", func(pod *corev1.Pod) bool {
			is := status(pod, "app").Resources
			return is != nil && is.Limits.Cpu().String() == "300m"
		})
		w.untouched(&before[i], "app")
		w.untouched(&before[i], "log")
	}
	w.command(0, []string{"restart app: level=debug", "2 of 2 pods have the template and are available"}, "set", "env", w.ref, "LEVEL=debug", followed)
	for _, pod := range w.updated(before, image, 1) {
		if got := strings.TrimSpace(w.exec(pod.Name, "app", "echo $LEVEL")); got != "debug" {
			t.Errorf("pod %s has LEVEL=%q", pod.Name, got)
		}
		if is := containerOf(&pod, "app").Resources; is.Requests.Cpu().String() != "20m" || is.Limits.Cpu().String() != "300m" {
			t.Errorf("resources of pod %s: %+v", pod.Name, is)
		}
	}
	const of = ".spec.template.spec.containers[0].resources"
	if got := w.run("get", w.ref, "--output=jsonpath={.spec.template.metadata.annotations.level} {"+of+".requests.cpu} {"+of+".limits.cpu}"); got != "debug 20m 300m" {
		t.Errorf("the template has %q", got)
	}
}

func TestWhatIsNotPossibleInPlaceIsRefusedByTheCommand(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 2,")
	before := w.ready(2)
	args := []string{"set", "resources", w.ref, "--requests=cpu=10m,memory=32Mi", "--limits=cpu=10m,memory=32Mi"}
	w.command(2, []string{"QoS class", "--allow-replacement"}, args...)
	w.settled()
	w.keeps(before)
	if _, code := w.refit("rollout", "status", w.ref); code != 2 {
		t.Errorf("rollout status without a policy: exit code %d", code)
	}
	w.command(0, []string{"replaced"}, append(args, "--allow-replacement", followed)...)
	after := w.ready(2)
	if slices.ContainsFunc(after, func(is corev1.Pod) bool {
		return slices.ContainsFunc(before, func(was corev1.Pod) bool { return was.UID == is.UID })
	}) {
		t.Error("pods have not been replaced")
	}
}
