package control

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/kit/stalecache"
)

// behind is a controller whose cache shows other objects than the API server has.
func behind(t *testing.T, cached, live []client.Object) *apiServer {
	t.Helper()
	a := newAPIServer(t, live...)
	a.reconciler.client = newAPIServer(t, cached...)
	return a
}

// started are the pods that the controller would restart now.
func (a *apiServer) started() []string {
	a.t.Helper()
	decision, err := a.reconciler.decide(a.t.Context(), object())
	if err != nil {
		a.t.Fatal(err)
	}
	var pods []string
	for _, request := range decision.Start {
		pods = append(pods, request.Spec.PodName)
	}
	return pods
}

func disruptionBudget(allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status.DisruptionsAllowed = allowed
	return b
}

func TestPodThatTheCacheShowsReadyCountsAgainstTheBudget(t *testing.T) {
	t.Parallel()
	cached := []client.Object{deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object()}
	unavailable := podOf("web-abc", 1)
	unavailable.Status.Conditions[0].Status = corev1.ConditionFalse
	a := behind(t, cached, []client.Object{deployment(), podOf("web-abc", 0), unavailable, object()})
	if pods := a.started(); !cmp.Equal(pods, []string{"web-abc-1"}) { // the unavailable pod costs nothing
		t.Errorf("%v", pods)
	}
	a = behind(t, cached, []client.Object{deployment(), podOf("web-abc", 1), object()})
	if pods := a.started(); !cmp.Equal(pods, []string{"web-abc-1"}) {
		t.Errorf("%v after the other pod has been deleted", pods)
	}
}

func TestPodThatTheWorkloadLacksCountsAgainstTheBudget(t *testing.T) {
	t.Parallel()
	two := deployment()
	two.Spec.Replicas = new(int32(2))
	if pods := newAPIServer(t, two, podOf("web-abc", 0), object()).started(); len(pods) != 0 {
		t.Errorf("%v, although the pod beside has been deleted and not been created again", pods)
	}
	if pods := newAPIServer(t, two, podOf("web-abc", 0), podOf("web-abc", 1), object()).started(); len(pods) != 1 {
		t.Errorf("%v, want one", pods)
	}
}

func TestDisruptionsThatTheCacheShowsAllowedAreReadAgain(t *testing.T) {
	t.Parallel()
	a := behind(t, []client.Object{deployment(), podOf("web-abc", 0), disruptionBudget(1), object()},
		[]client.Object{deployment(), podOf("web-abc", 0), disruptionBudget(0), object()})
	if pods := a.started(); len(pods) != 0 {
		t.Errorf("%v", pods)
	}
}

func TestRolloutThatWasCreatedAgainIsNotDecidedFromTheCache(t *testing.T) {
	t.Parallel()
	again := object()
	again.UID = "another"
	a := behind(t, []client.Object{deployment(), podOf("web-abc", 0), object()}, []client.Object{deployment(), podOf("web-abc", 0), again})
	if _, err := a.reconciler.decide(t.Context(), object()); !errors.Is(err, errReplaced) {
		t.Errorf("%v", err)
	}
}

func TestRolloutThatWasCreatedAgainIsNotDeletedFromTheCache(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, object(func(s *v1alpha1.RestartRolloutSpec) { s.TTLSecondsAfterFinished = new(int32(5)) }))
	a.settle()
	stale := a.rollout()
	again := stale.DeepCopy()
	again.UID, again.ResourceVersion = "another", ""
	if err := errors.Join(a.Delete(t.Context(), stale.DeepCopy()), a.Create(t.Context(), again)); err != nil {
		t.Fatal(err)
	}
	a.reconciler.client = stalecache.Client{Client: a, Object: stale}
	a.now = a.now.Add(time.Minute)
	if next, err := a.reconciler.Reconcile(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("%+v, %v, want a conflict", next, err)
	}
	if a.rollout().UID != "another" {
		t.Errorf("%+v", a.rollout())
	}
}

func TestRolloutWhoseTimeToLiveWasRaisedIsNotDeletedFromTheCache(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, object(func(s *v1alpha1.RestartRolloutSpec) { s.TTLSecondsAfterFinished = new(int32(5)) }))
	a.settle()
	stale := a.rollout()
	raised := stale.DeepCopy()
	raised.Spec.TTLSecondsAfterFinished = new(int32(3600))
	if err := a.Update(t.Context(), raised); err != nil {
		t.Fatal(err)
	}
	a.reconciler.client = stalecache.Client{Client: a, Object: stale}
	a.now = a.now.Add(time.Minute)
	if next, err := a.reconciler.Reconcile(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("%+v, %v, want a conflict", next, err)
	}
	if got := *a.rollout().Spec.TTLSecondsAfterFinished; got != 3600 {
		t.Errorf("TTL %d", got)
	}
}

// countingReader counts lists.
type countingReader struct {
	client.Reader
	lists map[string]int
}

func (c *countingReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists[fmt.Sprintf("%T", list)]++
	return c.Reader.List(ctx, list, options...)
}

func TestPodsAreReadFromTheAPIServerOnceForEachBatch(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), object())
	live := &countingReader{Reader: a, lists: map[string]int{}}
	a.reconciler.live = live
	for range 5 {
		a.settle() // the first creates a request, the others wait for it
	}
	if diff := cmp.Diff(map[string]int{"*v1.PodList": 1, "*v1beta1.ContainerRecreateRequestList": 1}, live.lists); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func TestRolloutThatWasCreatedAgainIsNotReplacedBySchedule(t *testing.T) {
	t.Parallel()
	replacing := hourly()
	replacing.Spec.ConcurrencyPolicy = v1alpha1.ScheduleReplace
	a := newAPIServer(t, replacing)
	if _, err := a.schedule(); err != nil {
		t.Fatal(err)
	}
	stale := &v1alpha1.RestartRollout{}
	if err := a.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: a.rolloutNames()[0]}, stale); err != nil {
		t.Fatal(err)
	}
	again := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: stale.Name, UID: "another"}, Spec: stale.Spec}
	if err := errors.Join(a.Delete(t.Context(), stale.DeepCopy()), a.Create(t.Context(), again)); err != nil {
		t.Fatal(err)
	}
	again.Labels = map[string]string{"another": "version"} // the fake API server begins with the same one for each object
	if err := a.Update(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	a.now = noon.Add(time.Hour)
	behind := &scheduler{Config: a.reconciler.Config, client: stalecache.Client{Client: a, Object: stale}}
	if next, err := behind.Reconcile(t.Context(), nightly); !apierrors.IsConflict(err) {
		t.Errorf("%+v, %v, want a conflict", next, err)
	}
	if err := a.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil {
		t.Error(err)
	}
}
