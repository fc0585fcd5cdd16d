package beside_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/control/beside"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/missed"
)

var errAway = errors.New("the cache is away")

// cacheOf has the objects. Calls that contain the text fail, such as "list *v1.PodList".
func cacheOf(t *testing.T, fails string, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), policyv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	answer := func(call string, object any) error {
		if fails != "" && strings.Contains(fmt.Sprintf("%s %T", call, object), fails) {
			return errAway
		}
		return nil
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1beta1.ContainerRecreateRequest{}, beside.RequestsByPod, beside.PodOfRequest).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := answer("get", o); err != nil {
					return err
				}
				return c.Get(ctx, k, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if err := answer("list", list); err != nil {
					return err
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
}

func namespaceOf(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestWhyAPodWasNotInjectedDependsOnItsNamespace(t *testing.T) {
	t.Parallel()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log"}}
	disabled := map[string]string{v1beta1.LabelSidecarInjection: "disabled"}
	cached := cacheOf(t, "", namespaceOf("off", disabled), namespaceOf("shop", map[string]string{v1beta1.LabelSidecarInjection: "enabled"}))
	for namespace, want := range map[string]missed.Reason{
		"shop": missed.NotReached, "off": missed.Excluded, "kube-system": missed.Excluded, "refit-system": missed.Excluded, "payments": missed.Excluded, "not-known": missed.NotReached,
	} {
		pod := readyPod("web-0")
		pod.Namespace = namespace
		why, err := beside.Missed(t.Context(), cached, set, pod, nil, []string{"refit-system", "payments"}, time.Unix(1e9, 0))
		if err != nil || why == nil || why.Reason != want {
			t.Errorf("%s: %+v, %v", namespace, why, err)
		}
	}
	if _, err := beside.Missed(t.Context(), cacheOf(t, "get *v1.PartialObjectMetadata"), set, readyPod("web-0"), nil, nil, time.Now()); !errors.Is(err, errAway) {
		t.Errorf("%v, although the namespace cannot be read", err)
	}
}

func TestASidecarSetSelectsByTheLabelsOfTheNamespaceToo(t *testing.T) {
	t.Parallel()
	inProduction, err := match.NewSelector(&v1beta1.SidecarSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "production"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cached := cacheOf(t, "", namespaceOf("shop", map[string]string{"env": "production"}), namespaceOf("test", nil))
	for name, tt := range map[string]struct {
		namespace, app string
		want           bool
	}{
		"both":              {"shop", "web", true},
		"another pod":       {"shop", "db", false},
		"another namespace": {"test", "web", false},
		"one that is gone":  {"gone", "web", false},
	} {
		pod := readyPod("web-0")
		pod.Namespace, pod.Labels["app"] = tt.namespace, tt.app
		if got, err := beside.Selects(t.Context(), cached, inProduction, pod); got != tt.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if got, err := beside.Selects(t.Context(), cacheOf(t, "get *v1.PartialObjectMetadata"), inProduction, readyPod("web-0")); !errors.Is(err, errAway) || got {
		t.Errorf("%t, %v, although the namespace cannot be read", got, err)
	}
}

// Otherwise containers would be stopped as if there were no PodDisruptionBudget, or no pod, or no restart.
func TestWhatCannotBeReadForABudgetIsAnError(t *testing.T) {
	t.Parallel()
	guarded := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}
	for _, call := range []string{"list *v1.PodDisruptionBudgetList", "list *v1.PodList", "list *v1beta1.ContainerRecreateRequestList"} {
		budgets := beside.NewBudgets(cacheOf(t, call, guarded), nil, func(*corev1.Pod) bool { return false }, time.Now())
		if budgets.In(t.Context(), "shop"); !errors.Is(budgets.Err, errAway) {
			t.Errorf("%s: %v", call, budgets.Err)
		}
	}
	if _, err := beside.Requests(t.Context(), cacheOf(t, "list *v1beta1.ContainerRecreateRequestList"), readyPod("web-0")); !errors.Is(err, errAway) {
		t.Errorf("requests: %v", err)
	}
}

// Pods that have ended serve nobody, and those that no budget selects use none of its disruptions.
func TestOnlyPodsThatABudgetSelectsUseItsDisruptions(t *testing.T) {
	t.Parallel()
	guarded := func(healthy int32) *policyv1.PodDisruptionBudget {
		one := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}}
		one.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		one.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: healthy - 1, CurrentHealthy: healthy, DesiredHealthy: 1, ExpectedPods: healthy}
		return one
	}
	change := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := readyPod("web-1")
		change(pod)
		return pod
	}
	restart := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "again"}}
	restart.Spec.PodName = "web-1"
	for name, tt := range map[string]struct {
		other *corev1.Pod
		held  bool
	}{
		"the other is being restarted": {readyPod("web-1"), true},
		"it has succeeded":             {change(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), false},
		"it has failed":                {change(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }), false},
		"no budget selects it":         {change(func(pod *corev1.Pod) { pod.Labels = nil }), false},
		"it is of another namespace":   {change(func(pod *corev1.Pod) { pod.Namespace = "bank" }), false},
	} {
		budgets := beside.NewBudgets(cacheOf(t, "", guarded(2), readyPod("web-0"), tt.other, restart), nil, func(*corev1.Pod) bool { return false }, time.Now())
		by := budgets.In(t.Context(), "shop").Take(&budget.Pod{Name: "web-0", Labels: map[string]string{"app": "web"}, Ready: true})
		if (by != "") != tt.held || budgets.Err != nil {
			t.Errorf("%s: held by %q, %v", name, by, budgets.Err)
		}
	}
	if none := beside.NewBudgets(cacheOf(t, "", readyPod("web-0")), nil, func(*corev1.Pod) bool { return false }, time.Now()); none.In(t.Context(), "shop") != nil {
		t.Error("there are no budgets")
	}
}

// A record that is too old no longer shows that an update is under way: nothing else tells when that is.
func TestItIsLookedAgainWhenTheFirstPodIsFree(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	begun := func(name string, ago time.Duration) *corev1.Pod {
		pod := readyPod(name)
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:2"}}
		pod.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"r","updateTimestamp":"` +
			now.Add(-ago).UTC().Format(time.RFC3339) + `","lastContainerStatuses":{"app":{"imageID":"1"}}}`}
		return pod
	}
	young := readyPod("web-0")
	young.Status.Conditions[0].Status = corev1.ConditionFalse // it is stuck in ten minutes, which is no reason to look
	young.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now)
	guarded := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	for name, tt := range map[string]struct {
		pods []client.Object
		want time.Duration
	}{
		"none":    {[]client.Object{young}, 0},
		"one":     {[]client.Object{young, begun("web-1", time.Minute)}, 9 * time.Minute},
		"two":     {[]client.Object{begun("web-1", time.Minute), begun("web-2", 2*time.Minute)}, 8 * time.Minute},
		"in turn": {[]client.Object{begun("web-1", 2*time.Minute), begun("web-2", time.Minute)}, 8 * time.Minute},
	} {
		budgets := beside.NewBudgets(cacheOf(t, "", append(tt.pods, guarded)...), nil, func(*corev1.Pod) bool { return false }, now)
		budgets.In(t.Context(), "shop")
		if budgets.Again.IsZero() != (tt.want == 0) || tt.want != 0 && !budgets.Again.Equal(now.Add(tt.want)) {
			t.Errorf("%s: again at %s (%v)", name, budgets.Again, budgets.Err)
		}
	}
}

func TestEveryEventOfARequestIsShownWithItsPod(t *testing.T) {
	t.Parallel()
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "again"}}
	request.Spec.PodName = "web-0"
	var looked []string
	events := beside.On(beside.OnRequest(threePodsAndABudget(t), slog.New(slog.DiscardHandler), func(_ context.Context, pod *corev1.Pod, _ beside.Queue) {
		looked = append(looked, pod.Name)
	}))
	events.Create(t.Context(), event.CreateEvent{Object: request}, nil)
	events.Update(t.Context(), event.UpdateEvent{ObjectOld: request, ObjectNew: request}, nil)
	events.Delete(t.Context(), event.DeleteEvent{Object: request}, nil)
	if len(looked) != 3 {
		t.Errorf("%v", looked)
	}
	gone := request.DeepCopy()
	gone.Spec.PodName = "gone"
	events.Create(t.Context(), event.CreateEvent{Object: gone}, nil)
	events.Create(t.Context(), event.CreateEvent{Object: readyPod("web-1")}, nil) // no request
	if len(looked) != 3 {
		t.Errorf("%v", looked)
	}
	if names := beside.PodOfRequest(readyPod("web-1")); len(names) != 0 {
		t.Errorf("indexed as %v", names)
	}
	if names := beside.PodOfRequest(&v1beta1.ContainerRecreateRequest{}); len(names) != 0 {
		t.Errorf("without a pod it is indexed as %v", names)
	}
}
