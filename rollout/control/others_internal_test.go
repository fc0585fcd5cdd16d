package control

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/rollout/control/deleted"
)

func requestFor(pod string) *v1beta1.ContainerRecreateRequest {
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-hand"}}
	request.Spec.PodName = pod
	return request
}

func TestARequestOfAUserCountsAgainstTheBudgetOfARollout(t *testing.T) {
	t.Parallel()
	request := requestFor("web-abc-1")
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), podOf("web-abc", 2), request, object())
	a.settle()
	for _, created := range a.requests() { // the pod itself is unavailable anyway
		if created.Spec.PodName != "web-abc-1" {
			t.Errorf("pod %s is restarted too", created.Spec.PodName)
		}
	}
}

// Both look at the same moment: neither shows the other what it has decided.
func TestTwoRolloutsOfOneWorkloadDoNotTakeOutAPodEach(t *testing.T) {
	t.Parallel()
	second := object(func(s *v1alpha1.RestartRolloutSpec) { s.Containers = v1alpha1.RolloutContainers("app") })
	second.Name, second.UID = "second", "second"
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object(), second)
	if pods := a.started(); !cmp.Equal(pods, []string{"web-abc-0"}) {
		t.Fatalf("%v", pods)
	}
	decision, err := a.reconciler.decide(t.Context(), second.DeepCopy())
	if err != nil || len(decision.Start) > 1 || len(decision.Start) == 1 && decision.Start[0].Spec.PodName != "web-abc-0" {
		t.Fatalf("%v, %+v", err, decision.Start)
	}
	if again := decision.Again; again.IsZero() || again.After(noon.Add(time.Minute)) {
		t.Errorf("looks again at %s", again)
	}
}

// A user deletes a rollout and creates another one while a container ignores TERM.
func TestARequestThatWasDeletedDuringItsStopCountsAgainstTheBudget(t *testing.T) {
	t.Parallel()
	request := requestFor("web-abc-1")
	request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{
		Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://web-abc-1",
	}}
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	events := deleted.Events{EventHandler: handler.EnqueueRequestsFromMapFunc(a.reconciler.active), Requests: &a.reconciler.deleted, Clock: a.reconciler.Clock}
	events.Delete(t.Context(), event.DeleteEvent{Object: request}, queue)
	if queue.Len() != 1 {
		t.Errorf("%d rollouts look again", queue.Len())
	}
	for _, pod := range a.started() {
		if pod != "web-abc-1" {
			t.Errorf("pod %s is restarted while the other one is being stopped", pod)
		}
	}
	a.now = a.now.Add(deleted.Keep + time.Second)
	if pods := a.started(); !cmp.Equal(pods, []string{"web-abc-0"}) {
		t.Errorf("%v", pods)
	}
}

// For example if a rollout is deleted after its requests have failed at their deadlines.
func TestARequestThatEndedAndWasDeletedDuringItsStopCountsAgainstTheBudget(t *testing.T) {
	t.Parallel()
	request := requestFor("web-abc-1")
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{
		Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://web-abc-1",
	}}
	crr.Complete(&request.Status, crr.Outcome{Reason: crr.ReasonDeadlineExceeded, Message: "too slow"}, 1, noon.Add(-time.Second))
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	a.reconciler.deleted.Note(request, noon)
	for _, pod := range a.started() {
		if pod != "web-abc-1" {
			t.Errorf("pod %s is restarted while the other one is being stopped", pod)
		}
	}
}

func TestReplacedRolloutIsKeptUntilItHasEnded(t *testing.T) {
	t.Parallel()
	replacing := hourly()
	replacing.Spec.ConcurrencyPolicy = v1alpha1.ScheduleReplace
	a := newAPIServer(t, replacing)
	if _, err := a.schedule(); err != nil {
		t.Fatal(err)
	}
	first := a.rolloutNames()[0]
	a.now = noon.Add(time.Hour)
	if _, err := a.schedule(); err != nil || len(a.rolloutNames()) != 2 {
		t.Fatalf("%v, %v", err, a.rolloutNames())
	}
	var old v1alpha1.RestartRollout
	if err := a.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: first}, &old); err != nil || !meta.IsStatusConditionTrue(old.Status.Conditions, v1alpha1.ConditionReplaced) {
		t.Fatalf("%v, %+v", err, old.Status)
	}
	old.Status.CompletionTime = &metav1.Time{Time: a.now}
	if err := a.Status().Update(t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	if _, err := a.schedule(); err != nil || len(a.rolloutNames()) != 1 || a.rolloutNames()[0] == first {
		t.Errorf("%v, %v", err, a.rolloutNames())
	}
}
