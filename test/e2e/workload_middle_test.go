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

// What can happen in the middle of an update.

// onePodFirst has an update wait after its first pod.
const onePodFirst = ", steps: [{pods: 1, pause: {}}]"

// deploymentAndStatefulSet are the kinds that can be scaled, with three replicas.
var deploymentAndStatefulSet = map[string]string{"Deployment": "replicas: 3,", "StatefulSet": "serviceName: web, replicas: 3,"}

// allKinds are the kinds of workloads, with three replicas if they can be scaled.
var allKinds = map[string]string{"Deployment": "replicas: 3,", "StatefulSet": "serviceName: web, replicas: 3,", "DaemonSet": ownDaemonSet}

// twoOfEachKind are the same with two replicas.
var twoOfEachKind = map[string]string{"Deployment": "replicas: 2,", "StatefulSet": "serviceName: web, replicas: 2,", "DaemonSet": ownDaemonSet}

// forKinds runs a test for each of the kinds, which are given with the fields of their own.
func forKinds(t *testing.T, kinds map[string]string, test func(t *testing.T, w *workload)) {
	t.Helper()
	for kind, own := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newWorkload(t, kind, own))
		})
	}
}

// setsPolicy changes the spec of the policy.
func (w *workload) setsPolicy(spec string) {
	w.t.Helper()
	w.run("patch", "inplaceupdatepolicy/web", "--type=merge", "--patch", `{"spec":{`+spec+`}}`)
}

// waitsAfterOnePod waits until the first step has ended, and returns the pods.
func (w *workload) waitsAfterOnePod(image string) []corev1.Pod {
	w.t.Helper()
	policy := &refitv1alpha1.InPlaceUpdatePolicy{}
	w.await("the end of the first step", func(ctx context.Context) (bool, error) {
		u, err := w.get(ctx)
		if err == nil {
			err = w.Get(ctx, w.key("web"), policy)
		}
		return err == nil && policy.Status.ObservedTargetGeneration == u.GetGeneration() && policy.Status.StepTime != nil, err
	})
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionTrue, refitv1alpha1.ReasonStep)
	if s := policy.Status; s.Step == nil || *s.Step != 0 || s.UpdatedReadyPods != 1 || s.UpdatingPods != 0 {
		w.t.Errorf("status %+v after the first step", s)
	}
	pods := w.ready(int(policy.Status.MatchedPods))
	if n := count(imagesOf(pods), image); n != 1 {
		w.t.Errorf("images %v after a step of one pod, want one %s", imagesOf(pods), image)
	}
	return pods
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// isFree fails the test if the workload is held.
func (w *workload) isFree() {
	w.t.Helper()
	if _, held := w.settled().GetLabels()[refitv1alpha1.LabelHeld]; held {
		w.t.Error("the workload is still held")
	}
}

func TestAnUpdateWaitsInItsStepsUntilTheyArePromoted(t *testing.T) {
	t.Parallel()
	forKinds(t, deploymentAndStatefulSet, func(t *testing.T, w *workload) {
		before := w.webs()
		w.follows(", steps: [{pods: 1, pause: {}}, {pods: 50%, pause: {}}]")
		w.run("set", "image", w.ref, "app="+newImage)
		w.waitsAfterOnePod(newImage)
		policy := w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionTrue, refitv1alpha1.ReasonStep)
		w.isHeld("a step", w.stored(), 0)
		w.setsPolicy(fmt.Sprintf(`"promoted":{"revision":%q,"step":0}`, policy.Status.UpdateRevision))
		w.await("the second step", func(ctx context.Context) (bool, error) {
			err := w.Get(ctx, w.key("web"), policy)
			s := &policy.Status
			return s.Step != nil && *s.Step == 1 && s.StepTime != nil && s.UpdatedReadyPods == 2, err
		})
		w.setsPolicy(fmt.Sprintf(`"promoted":{"revision":%q,"step":1}`, policy.Status.UpdateRevision))
		w.updated(before, newImage, 1)
		if s := w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "").Status; s.Step != nil || s.Update != nil {
			t.Errorf("status at the end: %+v", s)
		}
	})
}

// Only the pods that have the new template go back.
func TestAnUpdateIsUndoneInTheMiddle(t *testing.T) {
	t.Parallel()
	forKinds(t, allKinds, func(t *testing.T, w *workload) {
		if w.kind == "DaemonSet" {
			w.needsTwoNodes(t) // the first step has all pods otherwise
		}
		before := w.webs()
		w.follows(onePodFirst)
		w.run("set", "image", w.ref, "app="+newImage)
		pods := w.waitsAfterOnePod(newImage)
		if w.kind == "Deployment" { // kubectl refuses an undo of one that is paused
			w.run("set", "image", w.ref, "app="+image)
		} else {
			w.run("rollout", "undo", w.ref)
		}
		w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		w.keeps(before)
		for i := range pods {
			if containerOf(&pods[i], "app").Image == newImage {
				w.restarted(&pods[i], "app", 1)
			} else {
				w.untouched(&pods[i], "app")
			}
		}
		if got := imagesOf(w.ready(len(before))); count(got, image) != len(before) {
			t.Errorf("images %v", got)
		}
		w.isFree()
		w.rolledOut()
		w.keeps(before)
	})
}

// The newest template wins. No container is restarted more often than its own fields have changed.
func TestASecondChangeInTheMiddleOfAnUpdateRestartsNothingTwice(t *testing.T) {
	t.Parallel()
	forKinds(t, allKinds, func(t *testing.T, w *workload) {
		before := w.webs()
		w.follows(", minReadySeconds: 2")
		e := w.endpointsOf(len(before))
		w.run("set", "image", w.ref, "app="+newImage)
		w.await("the first pod", func(ctx context.Context) (bool, error) {
			pods, err := w.list(ctx)
			return slices.Contains(imagesOf(pods), newImage), err
		})
		w.patches(`{"spec":{"template":{"metadata":{"labels":{"second":"change"}},"spec":{"containers":[{"name":"log","image":"` + image + `"}]}}}}`)
		w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		w.keeps(before)
		for i := range before {
			w.restarted(&before[i], "app", 1)
			after := w.restarted(&before[i], "log", 1)
			if containerOf(after, "app").Image != newImage || containerOf(after, "log").Image != image || after.Labels["second"] != "change" {
				t.Errorf("pod %s does not have the second template: %v", after.Name, after.Labels)
			}
		}
		if least := e.least(len(before)); least < len(before)-1 {
			t.Errorf("%d of %d endpoints were ready", least, len(before))
		}
		w.isFree()
		w.rolledOut()
		w.keeps(before)
	})
}

// endpointsOf follows the endpoints of a Service for the workload, once there are so many.
func (w *workload) endpointsOf(n int) *endpoints {
	w.t.Helper()
	w.service("web")
	e := w.watchEndpoints("web")
	e.await(n)
	return e
}

func TestAWorkloadIsScaledInTheMiddleOfAnUpdate(t *testing.T) {
	t.Parallel()
	forKinds(t, deploymentAndStatefulSet, func(t *testing.T, w *workload) {
		w.follows(onePodFirst)
		w.run("set", "image", w.ref, "app="+newImage)
		w.waitsAfterOnePod(newImage)
		w.run("scale", w.ref, "--replicas=5")
		pods := w.ready(5)
		if got := imagesOf(pods); count(got, newImage) != 1 {
			t.Errorf("images after scaling up: %v; new pods have the former template", got)
		}
		w.setsPolicy(`"paused":true,"steps":null`)
		w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionUnknown, refitv1alpha1.ReasonPaused)
		w.run("scale", w.ref, "--replicas=4")
		before := w.ready(4)
		e := w.endpointsOf(4)
		w.setsPolicy(`"paused":false`)
		w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		w.keeps(before)
		for i := range before {
			if containerOf(&before[i], "app").Image == newImage {
				w.untouched(&before[i], "app")
			} else {
				w.restarted(&before[i], "app", 1)
			}
		}
		if least := e.least(4); least < 3 {
			t.Errorf("%d of 4 endpoints were ready", least)
		}
		w.isFree()
		w.rolledOut()
		w.keeps(before)
	})
}

// A Deployment that its owner has paused waits for its owner, and is updated in place after that.
func TestADeploymentThatItsOwnerHasPausedIsUpdatedWhenItIsResumed(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 2,")
	before := w.ready(2)
	w.follows("")
	w.run("rollout", "pause", w.ref)
	w.run("set", "image", w.ref, "app="+newImage)
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionUnknown, refitv1alpha1.ReasonPaused)
	if got := imagesOf(w.ready(2)); slices.Contains(got, newImage) {
		t.Errorf("images while the owner pauses: %v", got)
	}
	w.run("rollout", "resume", w.ref)
	w.updated(before, newImage, 1)
}

// The pods that have the new template when the policy is deleted go back, or the others are replaced.
func TestADeletedPolicyUndoesItsUpdate(t *testing.T) {
	t.Parallel()
	forKinds(t, deploymentAndStatefulSet, func(t *testing.T, w *workload) {
		w.follows(onePodFirst + ", deletionPolicy: Undo")
		w.run("set", "image", w.ref, "app="+newImage)
		pods := w.waitsAfterOnePod(newImage)
		w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
		w.settled()
		w.rolledOut()
		w.keeps(pods)
		for i := range pods {
			if containerOf(&pods[i], "app").Image == newImage {
				w.restarted(&pods[i], "app", 1)
			} else {
				w.untouched(&pods[i], "app")
			}
		}
		if got := imagesOf(w.ready(3)); count(got, image) != 3 {
			t.Errorf("images %v", got)
		}
		if got := w.holdOf(w.stored()); strings.Contains(got, "true") || got == w.hold(0) {
			t.Errorf("hold %q", got)
		}
	})
}

func TestADeletedPolicyReleasesItsWorkload(t *testing.T) {
	t.Parallel()
	forKinds(t, deploymentAndStatefulSet, func(t *testing.T, w *workload) {
		w.follows(onePodFirst + ", deletionPolicy: Release")
		w.run("set", "image", w.ref, "app="+newImage)
		pods := w.waitsAfterOnePod(newImage)
		w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
		w.settled()
		w.rolledOut()
		after := w.ready(3)
		if got := imagesOf(after); count(got, newImage) != 3 {
			t.Errorf("images %v", got)
		}
		kept := 0
		for i := range pods {
			if slices.ContainsFunc(after, func(p corev1.Pod) bool { return p.UID == pods[i].UID }) {
				kept++
			}
		}
		if want := map[string]int{"Deployment": 0, "StatefulSet": 1}[w.kind]; kept != want {
			t.Errorf("%d pods are kept, want %d", kept, want)
		}
		if got := w.holdOf(w.stored()); strings.Contains(got, "true") || got == w.hold(0) {
			t.Errorf("hold %q", got)
		}
	})
}

// message is the message of a condition of the policy.
func (w *workload) message(kind string) string {
	w.t.Helper()
	policy := &refitv1alpha1.InPlaceUpdatePolicy{}
	w.check(w.Get(w.t.Context(), w.key("web"), policy), "get InPlaceUpdatePolicy")
	if c := meta.FindStatusCondition(policy.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}
