package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What docs/workload-facts.md says of the controllers of Kubernetes. Nothing of Refit takes part.

const pausing = `"paused":true,`

func TestPausedDeploymentIsUpdatedThroughItsReplicaSet(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 2,")
	w.changes(newImage, pausing)
	w.settled()
	if sets := w.sets(); len(sets) != 1 {
		t.Errorf("%d ReplicaSets while paused", len(sets))
	}
	if out := w.run("rollout", "status", w.ref, "--watch=false"); !strings.Contains(out, "0 out of 2 new replicas have been updated") {
		t.Errorf("rollout status: %s", out)
	}
	w.awaitReason("DeploymentPaused")
	w.refusedRun("paused", "rollout", "restart", w.ref)
	w.run("scale", w.ref, "--replicas=3")
	pods := w.ready(3)
	if got := imagesOf(pods); !slices.Equal(got, []string{image, image, image}) {
		t.Errorf("images after scaling while paused: %v", got)
	}
	pods = w.inPlace(pods, newImage)
	w.awaits("status.updatedReplicas", "")
	w.setTemplate(&w.sets()[0], newImage)
	u := w.awaits("status.updatedReplicas", "3", "spec.paused", "true")
	if out := w.run("rollout", "status", w.ref, "--watch=false"); !strings.Contains(out, "successfully rolled out") {
		t.Errorf("rollout status: %s", out)
	}
	if got := u.GetAnnotations()["deployment.kubernetes.io/revision"]; got != "1" {
		t.Errorf("revision %s", got)
	}
	w.patches(`{"spec":{"paused":false}}`)
	w.settled()
	w.keeps(pods)
	w.awaitReason("NewReplicaSetAvailable")
	if sets := w.sets(); len(sets) != 1 {
		t.Errorf("%d ReplicaSets at the end", len(sets))
	}
	w.deletes(&pods[0])
	w.run("scale", w.ref, "--replicas=4")
	if got := imagesOf(w.ready(4)); slices.Contains(got, image) {
		t.Errorf("images of later pods: %v", got)
	}
}

// awaitReason waits for the reason of the Deployment's condition Progressing.
func (w *workload) awaitReason(reason string) {
	w.t.Helper()
	w.await("reason "+reason, func(ctx context.Context) (bool, error) {
		object := &appsv1.Deployment{}
		err := w.Get(ctx, w.key("web"), object)
		return slices.ContainsFunc(object.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentProgressing && c.Reason == reason
		}), err
	})
}

// rolledTwice has had a native rollout from image to newImage, so that it has a ReplicaSet without pods.
func rolledTwice(t *testing.T) (w *workload, older, withPods appsv1.ReplicaSet) {
	t.Helper()
	w = newWorkload(t, "Deployment", "replicas: 2,")
	w.changes(newImage, "")
	w.rolledOut()
	w.ready(2)
	sets := w.sets()
	if len(sets) != 2 {
		t.Fatalf("%d ReplicaSets", len(sets))
	}
	return w, sets[0], sets[1]
}

func TestTheOlderOfTwoEqualReplicaSetsGetsThePods(t *testing.T) {
	t.Parallel()
	w, older, withPods := rolledTwice(t)
	w.changes(image, pausing)
	w.settled()
	pods := w.inPlace(w.ready(2), image)
	w.setTemplate(&withPods, image)
	w.awaits("status.updatedReplicas", "")
	w.patches(`{"spec":{"paused":false}}`)
	w.await("all pods to be replaced", func(context.Context) (bool, error) {
		after := w.webs()
		return len(after) == 2 && !slices.ContainsFunc(after, func(is corev1.Pod) bool {
			return slices.ContainsFunc(pods, func(was corev1.Pod) bool { return was.UID == is.UID }) ||
				is.Labels["pod-template-hash"] != older.Labels["pod-template-hash"]
		}), nil
	})
}

func TestSwappedReplicaSetsAreTheHistoryOfADeployment(t *testing.T) {
	t.Parallel()
	w, older, withPods := rolledTwice(t)
	w.changes(image, pausing)
	w.settled()
	w.refusedRun("paused", "rollout", "undo", w.ref)
	pods := w.inPlace(w.ready(2), image)
	w.setTemplate(&older, newImage)
	w.setTemplate(&withPods, image)
	w.awaits("status.updatedReplicas", "2")
	w.patches(`{"spec":{"paused":false}}`)
	w.settled()
	w.keeps(pods)
	w.undoes(newImage, older.Name)
}

func TestReplicaSetWithoutPodsIsTheHistoryOfADeployment(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 2,")
	w.changes(newImage, pausing)
	w.settled()
	pods := w.inPlace(w.ready(2), newImage)
	set := w.sets()[0]
	history := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "web-history", OwnerReferences: set.OwnerReferences,
		Labels:      map[string]string{"app": "web", "pod-template-hash": "history"},
		Annotations: map[string]string{"deployment.kubernetes.io/revision": set.Annotations["deployment.kubernetes.io/revision"]},
	}, Spec: *set.Spec.DeepCopy()}
	history.Spec.Replicas = new(int32(0))
	history.Spec.Selector.MatchLabels["pod-template-hash"] = "history"
	history.Spec.Template.Labels["pod-template-hash"] = "history"
	w.check(w.Create(t.Context(), history), "create ReplicaSet")
	w.setTemplate(&set, newImage)
	w.awaits("status.updatedReplicas", "2")
	w.patches(`{"spec":{"paused":false}}`)
	w.settled()
	w.keeps(pods)
	w.undoes(image, history.Name)
}

// undoes has kubectl rollout undo go back to an image, by a ReplicaSet that has no pods yet.
func (w *workload) undoes(image, set string) {
	w.t.Helper()
	w.await("two revisions", func(context.Context) (bool, error) {
		out := w.run("rollout", "history", w.ref)
		return strings.Count(out, "<none>") == 2, nil
	})
	w.run("rollout", "undo", w.ref)
	w.rolledOut()
	w.ready(2)
	if sets := w.sets(); sets[len(sets)-1].Name != set {
		w.t.Errorf("the pods are of ReplicaSet %s, want %s", sets[len(sets)-1].Name, set)
	}
	if got := imagesOf(w.webs()); slices.ContainsFunc(got, func(i string) bool { return i != image }) {
		w.t.Errorf("images after undo: %v", got)
	}
}

func TestAPartitionHoldsAStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "StatefulSet", "serviceName: web, replicas: 2,")
	before := w.ready(2)
	w.changes(newImage, `"updateStrategy":{"rollingUpdate":{"partition":2147483647}},`)
	u := w.settled()
	current, update := field(u, "status.currentRevision"), field(u, "status.updateRevision")
	if current == update {
		t.Fatalf("update revision %s", update)
	}
	w.keeps(before)
	if out := w.run("rollout", "status", w.ref); !strings.Contains(out, "partitioned roll out complete: 0 new pods") {
		t.Errorf("rollout status: %s", out)
	}
	w.deletes(&before[1])
	pods := w.ready(2)
	if got := imagesOf(pods); slices.Contains(got, newImage) || pods[1].Labels[appsv1.ControllerRevisionHashLabelKey] != current {
		t.Errorf("a deleted pod comes back with %v, labels %v", got, pods[1].Labels)
	}
	pods = w.inPlace(pods, newImage)
	w.relabels(update, pods[1])
	w.awaits("status.updatedReplicas", "1", "status.currentRevision", current)
	w.relabels(update, pods[0])
	w.awaits("status.currentRevision", update, "status.updateRevision", update)
	w.patches(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	w.settled()
	w.keeps(pods)
	if out := w.run("rollout", "history", w.ref); strings.Count(out, "<none>") != 2 {
		t.Errorf("history: %s", out)
	}
	w.run("rollout", "undo", w.ref)
	w.rolledOut()
	if got := imagesOf(w.ready(2)); slices.Contains(got, newImage) {
		t.Errorf("images after undo: %v", got)
	}
}

func TestOnDeleteDoesNotKeepTheFormerTemplateOfAStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "StatefulSet", "serviceName: web, replicas: 2,")
	w.refusedRun("only allowed for updateStrategy 'RollingUpdate'", "patch", w.ref, "--patch", `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`)
	w.changes(newImage, `"updateStrategy":{"type":"OnDelete","rollingUpdate":null},`)
	w.settled()
	pods := w.ready(2)
	w.deletes(&pods[1])
	if got := imagesOf(w.ready(2)); !slices.Equal(got, []string{image, newImage}) {
		t.Errorf("images after a deletion: %v", got)
	}
	w.awaits("status.updatedReplicas", "1")
	w.refusedRun("RollingUpdate", "rollout", "status", w.ref)
}

func TestOnDeleteHoldsADaemonSet(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "DaemonSet", "updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}},")
	before := w.webs()
	w.changes(newImage, `"updateStrategy":{"type":"OnDelete"},`)
	u := w.settled()
	if got := field(u, "spec.updateStrategy.rollingUpdate.maxSurge"); got != "1" {
		t.Errorf("maxSurge %q beside OnDelete", got)
	}
	w.keeps(before)
	w.refusedRun("RollingUpdate", "rollout", "status", w.ref)
	pods := w.inPlace(before, newImage)
	w.relabels(w.newest().Labels[appsv1.ControllerRevisionHashLabelKey], pods...)
	w.awaits("status.updatedNumberScheduled", field(u, "status.desiredNumberScheduled"))
	w.patches(`{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`)
	w.settled()
	w.keeps(pods)
	w.rolledOut()
	w.changes(image, `"updateStrategy":{"type":"OnDelete"},`)
	w.settled()
	w.deletes(&pods[0])
	if got := imagesOf(w.ready(len(pods))); !slices.Contains(got, image) {
		t.Errorf("images after a deletion: %v", got)
	}
}

// newest is the ControllerRevision with the highest number.
func (w *workload) newest() *appsv1.ControllerRevision {
	w.t.Helper()
	var list appsv1.ControllerRevisionList
	w.check(w.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": "web"}), "list ControllerRevisions")
	newest := slices.MaxFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return &newest
}
