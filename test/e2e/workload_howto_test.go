package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
