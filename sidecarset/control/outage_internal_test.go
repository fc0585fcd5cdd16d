package control

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/missed"
)

// ofOne makes all pods of one ReplicaSet.
func (w *world) ofOne() {
	w.t.Helper()
	for _, pod := range w.pods() {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
		w.check(w.Update(w.t.Context(), &pod))
	}
}

// blip makes the pods that have the image not ready, for a moment.
func (w *world) blip(image string) {
	w.t.Helper()
	for _, pod := range w.pods() {
		if pod.Spec.Containers[1].Image != image {
			continue
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now)}}
		w.check(w.Status().Update(w.t.Context(), &pod))
	}
}

// All pods of a workload were updated at once, and their Service had no endpoint for 10 s.
func TestABlipOfAllPodsDoesNotUpdateThemAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.ofOne()
	w.look()
	w.change(image("log:2"))
	w.look() // the first is updated
	w.blip("log:1")
	w.look()
	if got := w.images(); got["log:2"] != 1 {
		t.Fatalf("%v while the first is updated, with maxUnavailable 1", got)
	}
	w.rounds(6)
	if got := w.images(); got["log:2"] != 3 {
		t.Errorf("%v in the end", got)
	}
}

// Of three pods two were evicted while the third was not replaced yet.
func TestABlipOfAllPodsDoesNotEvictThemAtOnce(t *testing.T) {
	t.Parallel()
	w := stateful(t, func(*v1beta1.SidecarSetSpec) {})
	if evicted := w.evicted(); len(evicted) != 1 {
		t.Fatalf("%d pods are evicted at first", len(evicted))
	}
	w.blip("log:1")
	if evicted := w.evicted(); len(evicted) != 0 {
		t.Errorf("%d pods are evicted before the first is replaced", len(evicted))
	}
	w.condition(v1beta1.ConditionProgressing, "True Updating")
}

// request is one of a user, or of a RestartRollout.
func (w *world) request(pod string) *v1beta1.ContainerRecreateRequest {
	w.t.Helper()
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "request-" + pod}}
	request.Spec.PodName = pod
	w.check(w.Create(w.t.Context(), request))
	return request
}

// The pod is still ready, since its container is being stopped.
func TestAPodThatIsBeingRestartedByRequestCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	request := w.request("web-1")
	w.denied["web-1"] = true // otherwise it would be the one that is updated
	w.change(image("log:2"))
	w.rounds(3)
	if got := w.images(); got["log:2"] != 0 {
		t.Fatalf("%v beside a restart, with maxUnavailable 1", got)
	}
	w.check(w.Delete(t.Context(), request))
	w.rounds(3)
	if got := w.images(); got["log:2"] != 2 {
		t.Errorf("%v after the restart", got)
	}
}

// Another SidecarSet has written to the pod; kubelet has not acted on it.
func TestAPodThatAnotherSidecarSetUpdatesCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.ofOne()
	w.look()
	pod := w.pods()[0]
	pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = `{"audit":{"revision":"r","updateTimestamp":"` + w.now.UTC().Format(time.RFC3339) +
		`","lastContainerStatuses":{"app":{"imageID":"sha256:app:1"}},"refit":{"instances":{"app":{"containerID":"containerd://app-app:1","image":"app:0"}}}}}`
	w.check(w.Update(t.Context(), &pod))
	w.denied[pod.Name] = true
	w.change(image("log:2"))
	w.rounds(3)
	if got := w.images(); got["log:2"] != 0 {
		t.Errorf("%v: no pod of two is left", got)
	}
	w.now = w.now.Add(10 * time.Minute) // such a record is no longer believed
	w.rounds(2)
	if got := w.images(); got["log:2"] != 1 {
		t.Errorf("%v: it holds up the other one for ever", got)
	}
}

// The caches do not show yet what another controller of the manager begins at the same moment.
func TestTwoControllersDoNotTakeOutAPodEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.ofOne()
	w.look()
	w.denied["web-0"] = true
	w.r.Disruptions.DecideBeside("RestartRollout shop/web", func(map[types.UID]time.Time) []types.UID { return []types.UID{"uid-web-0"} })
	w.change(image("log:2"))
	if again := w.reconcile(); w.images()["log:2"] != 0 || again == 0 || again > 10*time.Second {
		t.Fatalf("%v, looks again in %s", w.images(), again)
	}
	w.now = w.now.Add(10 * time.Second)
	w.look()
	if got := w.images(); got["log:2"] != 1 {
		t.Errorf("%v afterwards", got)
	}
}

// budget creates one for the pods of the world, of which there are two, that allows nothing.
func (w *world) budget() *policyv1.PodDisruptionBudget {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	w.check(w.Create(w.t.Context(), budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2, DesiredHealthy: 2, ExpectedPods: 2}
	w.check(w.Status().Update(w.t.Context(), budget))
	return budget
}

// Otherwise it would go on only when something of its own pods changes, which the budget prevents.
func TestASidecarSetThatABudgetHoldsLooksAgainWhenTheBudgetMayAllowMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	budget := w.budget()
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other"}}
	w.check(w.Create(t.Context(), stranger))
	restart := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "restart"}}
	restart.Spec.PodName = stranger.Name
	looks := func(of handler.EventHandler, object client.Object) bool {
		q := &enqueued{}
		of.Update(t.Context(), event.UpdateEvent{ObjectOld: object, ObjectNew: object}, q)
		return q.any
	}
	if looks(w.r.requestEvents(), restart) || looks(w.r.disruptionEvents(), budget) {
		t.Error("looks although nothing is held")
	}
	w.change(image("log:2"))
	w.rounds(1)
	if !looks(w.r.requestEvents(), restart) {
		t.Error("does not look when the restart of another pod has changed")
	}
	if !looks(w.r.disruptionEvents(), budget) {
		t.Error("does not look when the budget has changed")
	}
	if budget.Namespace = "bank"; looks(w.r.disruptionEvents(), budget) {
		t.Error("looks for a budget of another namespace")
	}
}

func TestAPodDisruptionBudgetIsAskedBeforeASidecarIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	budget := w.budget()
	w.change(image("log:2"))
	w.rounds(3)
	if got := w.images(); got["log:2"] != 0 {
		t.Fatalf("%v although the budget allows nothing", got)
	}
	if c := meta.FindStatusCondition(w.set().Status.Conditions, v1beta1.ConditionProgressing); !strings.Contains(c.Message, "PodDisruptionBudget shop/web") {
		t.Errorf("message %q", c.Message)
	}
	w.blip("log:1")
	w.rounds(1)
	if got := w.images(); got["log:2"] != 0 {
		t.Fatalf("%v: a pod that is not ready for a moment is updated", got)
	}
	budget.Status.DesiredHealthy, budget.Status.DisruptionsAllowed = 1, 1
	w.check(w.Status().Update(t.Context(), budget))
	w.rounds(4)
	if got := w.images(); got["log:2"] != 2 {
		t.Errorf("%v when the budget allows one", got)
	}
}

// It was Completed while the last pod that had been evicted was not replaced.
func TestARepairIsCompletedWhenTheEvictedPodIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.change(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict })
	w.miss("a")
	w.rounds(1)
	if w.missing() != "" {
		t.Fatalf("left are %s", w.missing())
	}
	w.rounds(2)
	w.condition(v1beta1.ConditionProgressing, "True Updating")
	w.replace("new")
	w.rounds(2)
	w.condition(v1beta1.ConditionProgressing, "True Completed")
}

// Of a workload one pod was evicted while another one was being restarted.
func TestAPodIsNotEvictedForItsSidecarsBesideARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.change(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict })
	w.miss("a", "b")
	request := w.request("a")
	w.rounds(3)
	if got := w.missing(); got != "a b" {
		t.Fatalf("left are %s beside the restart", got)
	}
	if why := w.r.find("logs").entry(types.NamespacedName{Namespace: "shop", Name: "a"}).missed; why == nil || why.Reason != missed.NotReached || !why.UnderWay {
		t.Errorf("%+v", why)
	}
	w.check(w.Delete(t.Context(), request))
	w.rounds(2)
	if got := w.missing(); got == "a b" {
		t.Error("none is evicted after the restart")
	}
}
