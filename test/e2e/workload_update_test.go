package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// follows gives the workload an InPlaceUpdatePolicy with these fields, as in a flow of YAML, and waits until templates are held.
func (w *workload) follows(spec string) {
	w.t.Helper()
	w.policy(spec)
	w.awaitHold()
}

// policy gives the workload an InPlaceUpdatePolicy, and waits until it is accepted.
func (w *workload) policy(spec string) {
	w.t.Helper()
	w.input(fmt.Sprintf(`
apiVersion: refit.dev/v1alpha1
kind: InPlaceUpdatePolicy
metadata: {name: web}
spec: {targetRef: {apiVersion: apps/v1, kind: %s, name: web}%s}
`, w.kind, spec), "apply")
	w.run("wait", "inplaceupdatepolicy/web", "--for=condition=Accepted", "--timeout="+patience.String())
}

// says waits until a condition of the policy has this status and reason, for the present template. Several updates, one after
// another, may take longer than patience.
func (w *workload) says(kind string, status metav1.ConditionStatus, reason string) *refitv1alpha1.InPlaceUpdatePolicy {
	w.t.Helper()
	policy := &refitv1alpha1.InPlaceUpdatePolicy{}
	err := until(w.t.Context(), 3*patience, func(ctx context.Context) (bool, error) {
		u, err := w.get(ctx)
		if err == nil {
			err = w.Get(ctx, w.key("web"), policy)
		}
		c := meta.FindStatusCondition(policy.Status.Conditions, kind)
		return err == nil && policy.Status.ObservedTargetGeneration == u.GetGeneration() && c != nil && c.Status == status && (reason == "" || c.Reason == reason), err
	})
	w.check(err, "wait for %s %s of the policy with reason %q: %+v", kind, status, reason, policy.Status)
	return policy
}

// updated waits until all pods have the template, and fails the test unless that was done in place.
func (w *workload) updated(before []corev1.Pod, image string, times int32) []corev1.Pod {
	w.t.Helper()
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	w.keeps(before)
	for i := range before {
		w.same(&before[i])
		w.restarted(&before[i], "app", times)
		w.untouched(&before[i], "log")
	}
	after := w.ready(len(before))
	if got := imagesOf(after); slices.ContainsFunc(got, func(is string) bool { return is != image }) {
		w.t.Errorf("images %v, want %s", got, image)
	}
	if _, held := w.settled().GetLabels()[refitv1alpha1.LabelHeld]; held {
		w.t.Error("the workload is still held")
	}
	w.rolledOut()
	w.keeps(after)
	return after
}

func TestWorkloadFollowsItsTemplateInPlace(t *testing.T) {
	t.Parallel()
	forKinds(t, allKinds, func(t *testing.T, w *workload) {
		before := w.webs()
		w.follows("")
		stop := w.unavailable("web")
		w.run("set", "image", w.ref, "app="+newImage)
		pods := w.updated(before, newImage, 1)
		if most := stop(); most > 1 {
			t.Errorf("%d pods were not ready at a time", most)
		}
		if out := w.run("rollout", "history", w.ref); strings.Count(out, "<none>") != 2 {
			t.Errorf("history: %s", out)
		}
		w.run("rollout", "undo", w.ref)
		pods = w.updated(pods, image, 1)
		if w.kind == "DaemonSet" {
			return
		}
		w.run("scale", w.ref, "--replicas=4")
		pods = w.ready(len(pods) + 1)
		w.run("set", "image", w.ref, "app="+newImage)
		w.updated(pods, newImage, 1)
		w.run("scale", w.ref, "--replicas=5")
		if got := imagesOf(w.ready(5)); slices.Contains(got, image) {
			t.Errorf("images after scaling: %v", got)
		}
	})
}

func TestABadImageStopsAfterMaxUnavailablePods(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	before := w.ready(3)
	w.follows(", progressDeadlineSeconds: 15, prePullPolicy: Never")
	w.run("set", "image", w.ref, "app="+missingImage)
	policy := w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionFalse, refitv1alpha1.ReasonPodsFailed)
	if policy.Status.FailedPods != 1 || policy.Status.UpdatedPods+policy.Status.UpdatingPods != 1 {
		t.Errorf("status %+v", policy.Status)
	}
	w.says(refitv1alpha1.ConditionStalled, metav1.ConditionTrue, refitv1alpha1.ReasonPodsFailed)
	w.keeps(before)
	untouched := 0
	for _, pod := range w.webs() {
		if containerOf(&pod, "app").Image == image && podReady(&pod) {
			untouched++
		}
	}
	if untouched != 2 {
		t.Errorf("%d pods are untouched and ready, want 2", untouched)
	}
	w.continuesAfterAFailure(before)
	w.run("set", "image", w.ref, "app="+newImage)
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	w.keeps(before)
	if got := imagesOf(w.ready(3)); slices.ContainsFunc(got, func(is string) bool { return is != newImage }) {
		t.Errorf("images %v", got)
	}
}

// continuesAfterAFailure has an update continue in which one of three pods has failed by a missing image. With the default failurePolicy
// no other pod is updated, although maxUnavailable allows it.
func (w *workload) continuesAfterAFailure(before []corev1.Pod) {
	w.t.Helper()
	w.setsPolicy(`"maxUnavailable":2`)
	w.await("the policy to be observed", func(ctx context.Context) (bool, error) {
		policy := &refitv1alpha1.InPlaceUpdatePolicy{}
		err := w.Get(ctx, w.key("web"), policy)
		return policy.Generation > 0 && policy.Status.ObservedGeneration == policy.Generation, err
	})
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionFalse, refitv1alpha1.ReasonPodsFailed)
	if got := imagesOf(w.webs()); count(got, missingImage) != 1 {
		w.t.Errorf("images %v, want one %s with failurePolicy Pause", got, missingImage)
	}
	w.setsPolicy(`"failurePolicy":"Continue"`)
	w.await("the update of another pod", func(ctx context.Context) (bool, error) {
		pods, err := w.list(ctx)
		return count(imagesOf(pods), missingImage) > 1, err
	})
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionTrue, refitv1alpha1.ReasonBudget) // failed pods count as unavailable
	w.keeps(before)
	if got := imagesOf(w.webs()); count(got, image) != 1 {
		w.t.Errorf("images %v, want one %s with failurePolicy Continue", got, image)
	}
}

func TestABadImageIsUndone(t *testing.T) {
	t.Parallel()
	forKinds(t, allKinds, func(t *testing.T, w *workload) {
		before := w.webs()
		w.follows(", progressDeadlineSeconds: 15, failurePolicy: Undo, prePullPolicy: Never")
		w.run("set", "image", w.ref, "app="+missingImage)
		w.await("the former template", func(ctx context.Context) (bool, error) {
			out, err := w.kubectl(ctx, "", "--namespace", w.namespace, "get", w.ref, "--output=jsonpath={.spec.template.spec.containers[0].image}")
			policy := &refitv1alpha1.InPlaceUpdatePolicy{}
			if err == nil {
				err = w.Get(ctx, w.key("web"), policy)
			}
			return out == image && policy.Status.UndoneRevision != "", err
		})
		w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		w.keeps(before)
		untouched := 0
		for _, pod := range w.ready(len(before)) {
			if status(&pod, "app").RestartCount == 0 {
				untouched++
			}
		}
		if untouched < len(before)-1 {
			t.Errorf("%d of %d pods are untouched, want all but one", untouched, len(before))
		}
		w.rolledOut()
	})
}

// A variable with a value of its own cannot be changed in a running pod.
const otherVariable = `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"A","value":"b"}]}]}}}}`

// allReplaced waits until there are as many ready pods as before, and fails the test unless they are others, with that variable.
func (w *workload) allReplaced(before []corev1.Pod) []corev1.Pod {
	w.t.Helper()
	after := w.ready(len(before))
	for i := range after {
		if slices.ContainsFunc(before, func(was corev1.Pod) bool { return was.UID == after[i].UID }) || envOf(&after[i], "app", "A") != "b" {
			w.t.Errorf("pod %s has not been replaced", after[i].Name)
		}
	}
	return after
}

// The workload is held for a moment and then released. Until then kubectl rollout status would not wait for a StatefulSet, and would
// refuse a DaemonSet.
func TestAChangeThatIsNotPossibleInPlaceReplacesThePods(t *testing.T) {
	t.Parallel()
	forKinds(t, twoOfEachKind, func(t *testing.T, w *workload) {
		before := w.webs()
		w.follows("")
		w.patches(otherVariable)
		w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		w.rolledOut()
		after := w.allReplaced(before)
		w.run("set", "image", w.ref, "app="+newImage)
		w.updated(after, newImage, 1)
	})
}

func TestInPlaceOnlyReplacesNoPods(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 2,")
	before := w.ready(2)
	w.follows(", podUpdatePolicy: InPlaceOnly")
	w.patches(otherVariable)
	policy := w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionFalse, refitv1alpha1.ReasonNotInPlace)
	if c := meta.FindStatusCondition(policy.Status.Conditions, refitv1alpha1.ConditionProgressing); !strings.Contains(c.Message, "env") {
		t.Errorf("message %q", c.Message)
	}
	w.settled()
	w.isHeld("a refused template", w.stored(), 0)
	w.keeps(before)
	w.input(w.manifest("web", "replicas: 2,", newImage), "replace")
	w.updated(before, newImage, 1)
}

func TestADeletedPolicyFinishesItsUpdate(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	before := w.ready(3)
	w.follows(", minReadySeconds: 3")
	w.run("set", "image", w.ref, "app="+newImage)
	w.await("the first pod", func(ctx context.Context) (bool, error) {
		pods, err := w.list(ctx)
		return slices.Contains(imagesOf(pods), newImage), err
	})
	w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
	w.settled()
	w.rolledOut()
	w.keeps(before)
	for i := range before {
		w.restarted(&before[i], "app", 1)
	}
	if got := w.holdOf(w.stored()); got != " " {
		t.Errorf("hold %q", got)
	}
}

func TestTheOlderOfTwoPoliciesIsAccepted(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 1,")
	w.follows("")
	w.input("apiVersion: refit.dev/v1alpha1\nkind: InPlaceUpdatePolicy\nmetadata: {name: z}\nspec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n", "apply")
	w.run("wait", "inplaceupdatepolicy/z", "--for=condition=Accepted=false", "--timeout="+patience.String())
	w.says(refitv1alpha1.ConditionAccepted, metav1.ConditionTrue, refitv1alpha1.ReasonAccepted)
}

// The manager that leads is killed while pods are updated: no pod is updated twice, and the update ends.
func TestUpdateOfAWorkloadSurvivesTheDeathOfItsManager(t *testing.T) {
	w := newWorkload(t, "StatefulSet", "serviceName: web, replicas: 4, podManagementPolicy: Parallel,")
	before := w.ready(4)
	w.follows("")
	w.run("set", "image", w.ref, "app="+newImage)
	for _, n := range []int{1, 3} {
		w.await(fmt.Sprintf("%d updated pods", n), func(ctx context.Context) (bool, error) {
			pods, err := w.list(ctx)
			updated := 0
			for _, is := range imagesOf(pods) {
				if is == newImage {
					updated++
				}
			}
			return updated >= n, err
		})
		w.killsLeader()
	}
	w.updated(before, newImage, 1)
}
