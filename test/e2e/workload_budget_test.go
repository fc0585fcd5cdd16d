package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// Whatever happens beside an update, no more pods are out of service than the budgets allow: as clients see them, in EndpointSlices.

// disruptionBudget lets so many pods of the workload be evicted at a time.
func (w *workload) disruptionBudget(maxUnavailable int) {
	w.t.Helper()
	w.input(fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: %d, selector: {matchLabels: {app: web}}}
`, maxUnavailable), "apply")
	w.await("the PodDisruptionBudget to be observed", func(ctx context.Context) (bool, error) {
		budget := &policyv1.PodDisruptionBudget{}
		err := w.Get(ctx, w.key("web"), budget)
		return budget.Generation > 0 && budget.Status.ObservedGeneration == budget.Generation, err
	})
}

func TestAnUpdateWaitsForAPodDisruptionBudget(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	before := w.ready(3)
	w.disruptionBudget(0)
	w.follows(", maxUnavailable: 100%")
	e := w.endpointsOf(3)
	w.run("set", "image", w.ref, "app="+newImage)
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionTrue, refitv1alpha1.ReasonDisruptionBudget)
	if got := imagesOf(w.ready(3)); count(got, image) != 3 {
		t.Errorf("images %v, with a budget that allows nothing", got)
	}
	w.disruptionBudget(1)
	w.updated(before, newImage, 1)
	if least := e.least(3); least < 2 {
		t.Errorf("%d of 3 endpoints were ready, want 2", least)
	}
}

// A pod that is evicted in the middle comes back with the former template, and is updated like the others.
func TestPodsAreEvictedInTheMiddleOfAnUpdate(t *testing.T) {
	t.Parallel()
	forKinds(t, deploymentAndStatefulSet, func(t *testing.T, w *workload) {
		w.disruptionBudget(1)
		w.follows(", minReadySeconds: 2")
		e := w.endpointsOf(3)
		w.run("set", "image", w.ref, "app="+newImage)
		w.await("the first pod", func(ctx context.Context) (bool, error) {
			pods, err := w.list(ctx)
			return count(imagesOf(pods), newImage) > 0, err
		})
		evicted := map[types.UID]bool{}
		for _, pod := range w.webs() {
			if containerOf(&pod, "app").Image == image && len(evicted) < 1 {
				evicted[pod.UID] = true
				w.evicts(&pod)
			}
		}
		w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		after := w.ready(3)
		for i := range after {
			if evicted[after[i].UID] || containerOf(&after[i], "app").Image != newImage {
				t.Errorf("pod %s: image %s", after[i].Name, containerOf(&after[i], "app").Image)
			}
		}
		if least := e.least(3); least < 2 {
			t.Errorf("%d of 3 endpoints were ready", least)
		}
		w.isFree()
		w.rolledOut()
		w.keeps(after)
	})
}

// evicts evicts a pod as kubectl drain does: again and again until the PodDisruptionBudget allows it.
func (w *workload) evicts(pod *corev1.Pod) {
	w.t.Helper()
	w.await("eviction of pod "+pod.Name, func(ctx context.Context) (bool, error) {
		eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
		err := w.SubResource("eviction").Create(ctx, pod, eviction)
		return err == nil, client.IgnoreNotFound(ignoreTooMany(err))
	})
}

func ignoreTooMany(err error) error {
	if apierrors.IsTooManyRequests(err) {
		return nil
	}
	return err
}

// serving gives container app a readiness probe that fails while there is a file, and resources, by a rollout of the
// controller of the workload.
func (w *workload) serving() {
	w.t.Helper()
	w.patches(fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","command":["sh","-c",%q],"resources":{"requests":{"cpu":"10m"},"limits":{"cpu":"200m"}},
"readinessProbe":{"httpGet":{"path":"/ready","port":8080},"periodSeconds":1,"failureThreshold":1,"timeoutSeconds":20}}]}}}}`, serving(8080, obedient)))
	w.rolledOut()
}

// A pod that is not ready takes nothing from the budget when it is updated.
func TestAPodThatIsNotReadyIsUpdatedFirst(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	w.serving()
	before := w.ready(3)
	w.follows("")
	e := w.endpointsOf(3)
	broken := before[1].Name
	w.exec(broken, "app", goesAway)
	e.await(2)
	w.patches(fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q,"resources":{"limits":{"cpu":"300m"}}}]}}}}`, newImage))
	after := w.updated(before, newImage, 1)
	first := status(w.pod(broken), "app").State.Running.StartedAt
	for _, pod := range after {
		if began := status(&pod, "app").State.Running.StartedAt; began.Before(&first) {
			t.Errorf("pod %s was updated before %s, which was not ready", pod.Name, broken)
		}
		if cpu := status(&pod, "app").Resources.Limits.Cpu().String(); cpu != "300m" {
			t.Errorf("pod %s has a limit of %s CPU, want 300m", pod.Name, cpu)
		}
	}
	if least := e.least(3); least < 2 {
		t.Errorf("%d of 3 endpoints were ready", least)
	}
}

func TestAnUpdateAndARestartRolloutKeepTwoPodsOfThree(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", "replicas: 3,")
	before := w.ready(3)
	w.follows(", minReadySeconds: 2")
	e := w.endpointsOf(3)
	w.run("set", "image", w.ref, "app="+newImage)
	rollout := &refitv1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
	rollout.Spec.TargetRef = &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	rollout.Spec.Containers = refitv1alpha1.RolloutContainers("log")
	w.check(w.Create(t.Context(), rollout), "create RestartRollout")
	err := until(t.Context(), 2*patience, func(ctx context.Context) (bool, error) {
		err := w.Get(ctx, w.key("web"), rollout)
		return rollout.Status.CompletionTime != nil, err
	})
	w.check(err, "wait for the RestartRollout: %+v", rollout.Status)
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	w.keeps(before)
	for i := range before {
		w.restarted(&before[i], "app", 1)
		w.restarted(&before[i], "log", 1)
	}
	if least := e.least(3); least < 2 {
		t.Errorf("%d of 3 endpoints were ready", least)
	}
	w.isFree()
}

// The sidecars of a SidecarSet are not in the template of the workload: an update keeps them.
func TestAnUpdateAndASidecarSetKeepOnePodOfTwo(t *testing.T) {
	t.Parallel()
	s, e := sidecars(t, 2, func(spec *v1beta1.SidecarSetSpec) { spec.Containers[0].ReadinessProbe.InitialDelaySeconds = 3 }, "log")
	w := &workload{fixture: s, kind: "Deployment", ref: "deployment/web"}
	before := w.ready(2)
	w.follows("")
	s.setsSidecar("log", imageOfSidecar(newImage))
	w.run("set", "image", w.ref, "app="+newImage)
	s.updated(2, "log")
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	w.keeps(before)
	for i := range before {
		w.restarted(&before[i], "app", 1)
		if after := w.restarted(&before[i], "log", 1); containerOf(after, "app").Image != newImage || containerOf(after, "log").Image != newImage {
			t.Errorf("pod %s: images %s and %s", after.Name, containerOf(after, "app").Image, containerOf(after, "log").Image)
		}
	}
	if least := e.least(2); least < 1 {
		t.Errorf("%d of 2 endpoints were ready", least)
	}
	w.isFree()
}

// A DaemonSet creates the pod of a new node with the new template, also in the middle of an update.
func TestANewNodeOfADaemonSetInTheMiddleOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := &workload{fixture: newFixture(t), kind: "DaemonSet", ref: "daemonset/web"}
	w.needsTwoNodes(t)
	label := w.namespace + ".test/web"
	own := strings.Replace(w.manifest("web", ownDaemonSet, image), "terminationGracePeriodSeconds", fmt.Sprintf("nodeSelector: {%s: here}, terminationGracePeriodSeconds", label), 1)
	w.labelsNode(0, label)
	w.input(own, "apply")
	w.rolledOut()
	before := w.ready(1)
	w.follows(onePodFirst)
	w.run("set", "image", w.ref, "app="+newImage)
	w.await("the first pod to be updated", func(ctx context.Context) (bool, error) {
		pods, err := w.list(ctx)
		return count(imagesOf(pods), newImage) == 1, err
	})
	w.labelsNode(1, label)
	w.ready(2)
	w.setsPolicy(`"steps":null`)
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	after := w.ready(2)
	if got := imagesOf(after); count(got, newImage) != 2 {
		t.Errorf("images %v", got)
	}
	w.same(&before[0])
	w.restarted(&before[0], "app", 1)
	w.isFree()
	w.rolledOut()
	w.keeps(after)
}

// labelsNode gives a node a label for the time of the test.
func (w *workload) labelsNode(n int, label string) {
	w.t.Helper()
	set := func(ctx context.Context, value string) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodes[n]}}
		return w.Patch(ctx, node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value)))
	}
	w.check(set(w.t.Context(), `"here"`), "label node")
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), cleanTimeout)
		defer cancel()
		if err := set(ctx, "null"); err != nil {
			w.t.Errorf("remove label of node: %v", err)
		}
	})
}
