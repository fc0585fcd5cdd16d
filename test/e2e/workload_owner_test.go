package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// ownHold is how the owner of a workload holds it permanently.
var ownHold = map[string]string{
	"Deployment":  `{"spec":{"paused":true}}`,
	"StatefulSet": `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`,
	"DaemonSet":   `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`,
}

// heldByOwner has an owner that holds it permanently, and a policy for that. It returns its pods.
func (w *workload) heldByOwner(spec string) []corev1.Pod {
	w.t.Helper()
	w.patches(ownHold[w.kind])
	w.settled()
	w.policy(", holdPolicy: ByOwner" + spec)
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, refitv1alpha1.ReasonCompleted)
	return w.ready(len(w.webs()))
}

// updatedAndHeld waits until all pods have the template in place, and fails the test unless the owner's hold is as it was.
func (w *workload) updatedAndHeld(before []corev1.Pod, image string) []corev1.Pod {
	w.t.Helper()
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, refitv1alpha1.ReasonCompleted)
	w.settled()
	w.keeps(before)
	for i := range before {
		w.same(&before[i])
		w.restarted(&before[i], "app", 1)
		w.untouched(&before[i], "log")
	}
	after := w.ready(len(before))
	if got := imagesOf(after); count(got, image) != len(before) {
		w.t.Errorf("images %v, want %s", got, image)
	}
	u, err := w.get(w.t.Context())
	w.check(err, "get %s", w.ref)
	if _, held := u.GetLabels()[refitv1alpha1.LabelHeld]; held || field(u, "spec.paused") != "true" && field(u, "spec.updateStrategy.type") != "OnDelete" {
		w.t.Errorf("the owner does not hold it any more: labels %v, spec %v", u.GetLabels(), u.Object["spec"])
	}
	return after
}

// Such a workload is not held by the API server, so it works before Kubernetes 1.36 too, and is never released.
func TestAWorkloadThatItsOwnerHoldsFollowsItsTemplate(t *testing.T) {
	t.Parallel()
	forKinds(t, twoOfEachKind, func(t *testing.T, w *workload) {
		pods := w.heldByOwner("")
		stop := w.unavailable("web")
		w.run("set", "image", w.ref, "app="+newImage)
		pods = w.updatedAndHeld(pods, newImage)
		if most := stop(); most > 1 {
			t.Errorf("%d pods were not ready at a time", most)
		}
		w.deletes(&pods[0])
		pods = w.ready(len(pods))
		if got := imagesOf(pods); slices.Contains(got, image) {
			t.Errorf("images after a deletion: %v", got)
		}
		if out := w.run("rollout", "history", w.ref); strings.Count(out, "<none>") != 2 {
			t.Errorf("history: %s", out)
		}
		w.run("set", "image", w.ref, "app="+image)
		pods = w.updatedAndHeld(pods, image)
		w.patches(otherVariable)
		w.notPossible(pods)
		w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
	})
}

// notPossible says what happens to a change that is not possible in place: Refit evicts the pods, or it is the owner's turn
// to resume a Deployment.
func (w *workload) notPossible(before []corev1.Pod) {
	w.t.Helper()
	if w.kind == "Deployment" {
		w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionFalse, refitv1alpha1.ReasonNotInPlace)
		if m := w.message(refitv1alpha1.ConditionProgressing); !strings.Contains(m, "resume the Deployment") {
			w.t.Errorf("message %q", m)
		}
		w.keeps(before)
		w.run("rollout", "resume", w.ref)
		w.rolledOut()
		w.ready(len(before))
		return
	}
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, refitv1alpha1.ReasonCompleted)
	w.allReplaced(before)
}

// Pods with lower ordinals than the partition of the owner keep the former template.
func TestThePartitionOfTheOwnerOfAStatefulSetIsKept(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "StatefulSet", "serviceName: web, replicas: 3,")
	before := w.ready(3)
	w.follows("")
	w.patches(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}`)
	w.run("set", "image", w.ref, "app="+newImage)
	w.await("the release", func(ctx context.Context) (bool, error) {
		out, err := w.kubectl(ctx, "", "--namespace", w.namespace, "get", w.ref, "--output=yaml")
		pods, listErr := w.list(ctx)
		return err == nil && listErr == nil && count(imagesOf(pods), newImage) == 2 && w.holdOf(out) == " 1", nil
	})
	w.settled()
	w.keeps(before)
	w.untouched(&before[0], "app")
	w.restarted(&before[1], "app", 1)
	w.restarted(&before[2], "app", 1)
}
