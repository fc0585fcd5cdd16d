package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// docs/how-to/autoscalers.md
func TestResourcesOfATemplateAreChangedWithoutRestarts(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	w.run("set", "resources", w.ref, "--containers=app", "--requests=cpu=10m,memory=16Mi")
	w.rolledOut()
	before := w.ready(3)
	w.follows(", maxUnavailable: 25%")
	w.run("set", "resources", w.ref, "--containers=app", "--requests=cpu=20m,memory=24Mi")
	w.rolledOut()
	w.keeps(before)
	for i := range before {
		w.untouched(&before[i], "app")
		w.untouched(&before[i], "log")
	}
	for _, pod := range w.ready(3) {
		if got := containerOf(&pod, "app").Resources.Requests; got.Cpu().String() != "20m" || got.Memory().String() != "24Mi" {
			t.Errorf("requests of %s: %v", pod.Name, got)
		}
	}
}

// docs/how-to/migrate-from-cloneset.md: what a CloneSet leaves behind when it is deleted are pods that no controller owns.
func TestPodsMoveToADeploymentWithoutARestart(t *testing.T) {
	t.Parallel()
	w := &workload{fixture: newFixture(t), kind: "Deployment", ref: "deployment/web"}
	template := func(labels string) string {
		_, text, _ := strings.Cut(w.manifest("web", "replicas: 2,", image), "template:")
		return strings.Replace("template:"+text, "labels: {app: web}", "labels: {"+labels+"}", 1)
	}
	const moved = "app: web, pod-template-hash: moved"
	for i := range 2 {
		_, spec, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(template("app: web")), "}}"), "spec: ")
		w.input(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web-%c, labels: {app: web, apps.kruise.io/cloneset-instance-id: %[1]c}}\nspec:\n  %s\n", 'a'+i, spec), "apply")
	}
	before := w.ready(2)
	w.run("label", "pods", "--selector=app=web", "pod-template-hash=moved")
	w.input("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-moved, labels: {"+moved+"}}\nspec:\n  {replicas: 2, selector: {matchLabels: {"+moved+"}}, "+template(moved), "apply")
	w.run("wait", "replicaset/web-moved", "--for=jsonpath={.status.readyReplicas}=2", "--timeout="+patience.String())
	w.input(w.manifest("web", "replicas: 2,", image), "apply")
	w.rolledOut()
	w.keeps(before)
	w.follows("")
	w.run("set", "image", w.ref, "app="+newImage)
	w.updated(before, newImage, 1)
	for _, set := range w.sets() {
		if *set.Spec.Replicas > 0 && set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != "moved" {
			t.Errorf("pods have moved to ReplicaSet %s", set.Name)
		}
	}
}

// docs/how-to/migrate-from-cloneset.md, back: without its policy the Deployment is as any other, and its pods, which were updated in place,
// have nothing that a CloneSet would take for an update that has not ended. They can be given to it without a restart.
func TestPodsLeaveADeploymentForACloneSetWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 2,")
	before := w.ready(2)
	w.follows("")
	w.run("set", "image", w.ref, "app="+newImage)
	pods := w.updated(before, newImage, 1)
	w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
	left := w.settled()
	for _, label := range []string{refitv1alpha1.LabelHeld, refitv1alpha1.LabelHoldUID} {
		if value, is := left.GetLabels()[label]; is {
			t.Errorf("the Deployment has the label %s: %s", label, value)
		}
	}
	if field(left, "spec.paused") == "true" {
		t.Error("the Deployment is paused")
	}
	for i := range pods {
		if err := endedForOpenKruise(w.pod(pods[i].Name)); err != nil {
			t.Errorf("pod %s: %v", pods[i].Name, err)
		}
	}

	w.run("delete", w.ref, "--cascade=orphan")
	w.run("delete", "replicaset", "--selector=app=web", "--cascade=orphan")
	w.await("pods without an owner", func(ctx context.Context) (bool, error) {
		list, err := w.list(ctx)
		return !slices.ContainsFunc(list, func(pod corev1.Pod) bool { return len(pod.OwnerReferences) > 0 }), err
	})
	// There is no CloneSet here: its UID is one that no object has, so the owner is not stored.
	const adopted = `{"metadata":{"labels":{"controller-revision-hash":"web-5d7f"},"ownerReferences":[{"apiVersion":"apps.kruise.io/v1beta1",` +
		`"kind":"CloneSet","name":"web","uid":"00000000-0000-4000-8000-000000000000","controller":true,"blockOwnerDeletion":true}]}}`
	for i := range pods {
		w.run("patch", "pod", pods[i].Name, "--type=merge", "--patch", adopted, "--dry-run=server")
		w.run("label", "pod", pods[i].Name, "controller-revision-hash=web-5d7f")
	}
	w.keeps(pods)
	for i := range pods {
		w.untouched(&pods[i], "app")
		w.untouched(&pods[i], "log")
	}

	// The next update is by the controller of the CloneSet.
	next := &pods[0]
	state := &kruiseState{Revision: "web-6b9c", UpdateTimestamp: metav1.Now(), UpdateImages: true, LastContainerStatuses: map[string]map[string]string{
		"app": {"imageID": status(w.pod(next.Name), "app").ImageID}}}
	w.writeAsKruise(next.Name, state, func(pod *corev1.Pod) {
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "web-6b9c"
		pod.Spec.Containers[0].Image = image
	})
	w.replaced(next, "app")
	w.awaitPod(next.Name, "to be ready", podReady)
	w.restarted(next, "app", 1)
	w.untouched(next, "log")
	w.untouched(&pods[1], "app")
}

// endedForOpenKruise says why a controller of OpenKruise would wait for an update of the pod, or keep it out of its Services.
func endedForOpenKruise(pod *corev1.Pod) error {
	for _, gate := range []corev1.PodConditionType{v1beta1.ReadinessGateInPlaceUpdateReady, v1beta1.ReadinessGateKruisePodReady} {
		if condition(pod, gate) == corev1.ConditionFalse {
			return fmt.Errorf("condition %s is False", gate)
		}
	}
	if grace := pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace]; grace != "" {
		return fmt.Errorf("it is in a grace period: %s", grace)
	}
	state := &kruiseState{}
	if err := json.Unmarshal([]byte(pod.Annotations[v1beta1.AnnotationInPlaceUpdateState]), state); err != nil {
		return fmt.Errorf("state of the update: %w", err)
	}
	if len(state.NextContainerImages) > 0 || len(state.NextContainerRefMetadata) > 0 {
		return fmt.Errorf("containers are still to be updated: %+v", state)
	}
	for name, last := range state.LastContainerStatuses {
		if is := status(pod, name); is.ImageID == last["imageID"] && is.Image != containerOf(pod, name).Image {
			return fmt.Errorf("the image of container %s has not changed: %s", name, is.ImageID)
		}
	}
	return nil
}
