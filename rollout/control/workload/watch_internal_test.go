package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// enqueued records what a handler enqueues.
type enqueued struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	names []string
	after time.Duration // of the last one
}

func (e *enqueued) AddAfter(request ctrl.Request, after time.Duration) {
	e.names, e.after = append(e.names, request.Name), after
}

func (e *enqueued) take() []string {
	names := slices.Compact(slices.Sorted(slices.Values(e.names)))
	e.names = nil
	return names
}

func podOf(kind, owner string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "p"}}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: "another", Controller: new(true)}}
	return pod
}

func TestEventsConcernThePoliciesOfTheirWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, kind := range map[string]string{"db": "StatefulSet", "agent": "DaemonSet", "other": "Deployment"} {
		p := w.policy(name)
		p.Spec.TargetRef.Kind, p.Spec.TargetRef.Name = kind, name
		w.check(w.Create(t.Context(), p))
	}
	q := &enqueued{}
	pods := w.r.podEvents()
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"of a ReplicaSet", &w.pods()[0], "web"},
		{"of a new ReplicaSet", podOf("ReplicaSet", "other-5d7b6c9f4"), "other"},
		{"of a StatefulSet", podOf("StatefulSet", "db"), "db"},
		{"of a DaemonSet", podOf("DaemonSet", "agent"), "agent"},
		{"of a workload without a policy", podOf("StatefulSet", "web"), ""},
		{"without a controller", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}, ""},
	} {
		pods.Create(t.Context(), event.CreateEvent{Object: tt.pod}, q)
		if got := strings.Join(q.take(), " "); got != tt.want {
			t.Errorf("pod %s: %q are reconciled, want %q", tt.name, got, tt.want)
		}
	}
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r"}}
	request.Spec.PodName = "web-a-1"
	on(w.r.onRequest).Create(t.Context(), event.CreateEvent{Object: request}, q)
	if got := strings.Join(q.take(), " "); got != "web" {
		t.Errorf("request: %q are reconciled", got)
	}
	workload := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	w.r.onWorkload("StatefulSet").Update(t.Context(), event.UpdateEvent{ObjectOld: workload, ObjectNew: workload}, q)
	if got := strings.Join(q.take(), " "); got != "db" {
		t.Errorf("workload: %q are reconciled", got)
	}
	w.r.policyEvents().Delete(t.Context(), event.DeleteEvent{Object: w.policy("older")}, q)
	if got := strings.Join(q.take(), " "); got != "web" {
		t.Errorf("deleted policy of the same workload: %q are reconciled", got)
	}
}

// An update must not wait for events that do not come, nor must each of many events cause a reconciliation.
func TestAnEventAfterAPauseIsHandledSoon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := &enqueued{}
	w.reconcile("web")
	began := w.now
	for _, tt := range []struct{ took, since, after time.Duration }{
		{time.Second, 0, gather}, {time.Second, 100 * time.Millisecond, gather - 100*time.Millisecond}, {time.Second, gather, soon}, {time.Second, time.Hour, soon},
		{30 * time.Millisecond, 0, 120 * time.Millisecond}, {30 * time.Millisecond, 50 * time.Millisecond, 70 * time.Millisecond}, {0, 0, soon},
	} {
		w.now = began.Add(tt.since)
		w.r.states[types.NamespacedName{Namespace: "shop", Name: "web"}].took = tt.took
		w.r.podEvents().Create(t.Context(), event.CreateEvent{Object: &w.pods()[0]}, q)
		if q.after != tt.after {
			t.Errorf("an event %s after a reconciliation that took %s is handled after %s, want %s", tt.since, tt.took, q.after, tt.after)
		}
	}
}

// The controller writes a status before it writes pods, and would be called once more for each of these writes.
func TestAWrittenStatusIsHandledWithTheEventsOfPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reconcile("web")
	w.r.states[types.NamespacedName{Namespace: "shop", Name: "web"}].took = time.Second
	before := &v1alpha1.InPlaceUpdatePolicy{}
	w.check(w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, before))
	for name, tt := range map[string]struct {
		change func(*v1alpha1.InPlaceUpdatePolicy)
		atOnce bool
	}{
		"status":               {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Status.UpdatedPods++ }, false},
		"spec":                 {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Generation++ }, true},
		"annotation":           {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Annotations = map[string]string{"a": "b"} }, true},
		"label":                {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Labels = map[string]string{"a": "b"} }, true},
		"finalizer":            {func(p *v1alpha1.InPlaceUpdatePolicy) { p.Finalizers = append(p.Finalizers, "example.com/x") }, true},
		"deletion":             {func(p *v1alpha1.InPlaceUpdatePolicy) { p.DeletionTimestamp = &metav1.Time{Time: w.now} }, true},
		"another policy":       {func(p *v1alpha1.InPlaceUpdatePolicy) { p.UID = "another" }, true},
		"nothing, by a resync": {func(p *v1alpha1.InPlaceUpdatePolicy) { p.ResourceVersion = before.ResourceVersion }, true},
	} {
		after := before.DeepCopy()
		after.ResourceVersion += "0"
		tt.change(after)
		e, q := event.UpdateEvent{ObjectOld: before, ObjectNew: after}, &enqueued{}
		w.r.policyEvents().Update(t.Context(), e, q)
		if atOnce, later := policyChanged().Update(e), len(q.take()) == 1 && q.after == gather; atOnce != tt.atOnce || later == tt.atOnce {
			t.Errorf("%s: reconciled at once %t, with others %t", name, atOnce, later)
		}
	}
}

// A ReplicaSet that a Deployment has adopted may have any name.
func TestPodsOfAReplicaSetWithAnotherNameConcernThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := &enqueued{}
	pod := w.pods()[0]
	pod.OwnerReferences[0].Name = "adopted"
	w.r.podEvents().Delete(t.Context(), event.DeleteEvent{Object: &pod}, q)
	if got := q.take(); len(got) != 1 {
		t.Errorf("%q are reconciled", got)
	}
	w.check(w.Delete(t.Context(), w.policy("web")))
	for range 3 { // the label and the finalizer are removed first
		w.reconcile("web")
	}
	w.r.podEvents().Delete(t.Context(), event.DeleteEvent{Object: &pod}, q)
	if got := q.take(); len(got) != 0 {
		t.Errorf("%q are reconciled after the policy was deleted", got)
	}
}

func TestUnchangedPodsConcernNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.pods()[0]
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   int
	}{
		"resource version":     {func(p *corev1.Pod) { p.ResourceVersion = "9" }, 0},
		"generation":           {func(p *corev1.Pod) { p.Generation++ }, 1},
		"deletion":             {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: w.now} }, 1},
		"label":                {func(p *corev1.Pod) { p.Labels["a"] = "b" }, 1},
		"record of its update": {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, 1},
		"readiness":            {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, 1},
		"controller":           {func(p *corev1.Pod) { p.OwnerReferences = nil }, 1},
		"another pod":          {func(p *corev1.Pod) { p.UID = "another" }, 1},
	} {
		after := before.DeepCopy()
		tt.change(after)
		q := &enqueued{}
		w.r.podEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: after}, q)
		if got := q.take(); len(got) != tt.want {
			t.Errorf("%s: %q are reconciled", name, got)
		}
	}
	if w.r.lastPodEvent.Load() != w.now.UnixNano() {
		t.Error("the events are not noted")
	}
}

// Kubelet removes a condition when a resize has ended, and changes nothing else that is compared.
func TestChangesThatTheCacheKeepsLittleOfConcernThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, change := range map[string]func(before, after *corev1.Pod){
		"the end of a resize": func(before, _ *corev1.Pod) {
			before.Annotations[v1beta1.AnnotationInPlaceUpdateState] = `{"revision":"r"}`
			before.Status.Conditions = append(before.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
		},
		"pod that is too large for the cache": func(_, after *corev1.Pod) {
			after.Labels["large"] = strings.Repeat("x", 64<<10)
			after.Status.ContainerStatuses[0].ContainerID = "containerd://another"
		},
		"image before Kubernetes 1.33": func(_, after *corev1.Pod) { after.Spec.Containers[0].Image = "app:2" },
	} {
		before := w.pods()[0]
		before.Annotations = map[string]string{}
		after := before.DeepCopy()
		change(&before, after)
		before.Labels, after.Annotations = after.Labels, before.Annotations
		after.ResourceVersion += "0"
		q := &enqueued{}
		w.r.podEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: cachedPod(t, &before), ObjectNew: cachedPod(t, after)}, q)
		if got := q.take(); len(got) != 1 {
			t.Errorf("%s: %q are reconciled", name, got)
		}
	}
}

func cachedPod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return trimmer.Of(pod)
}

// Events of budgets and of pods of others concern a policy only while a budget holds it.
func TestPolicyThatADisruptionBudgetHoldsWaitsForEventsOfTheNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	budget.Spec.MaxUnavailable = new(intstr.FromInt32(0))
	w.check(w.Create(t.Context(), budget))
	look := func() int {
		q := &enqueued{}
		on(w.r.onDisruption).Update(t.Context(), event.UpdateEvent{ObjectOld: budget, ObjectNew: budget}, q)
		w.r.podEvents().Create(t.Context(), event.CreateEvent{Object: podOf("StatefulSet", "others")}, q)
		return len(q.names)
	}
	if n := look(); n != 0 {
		t.Errorf("%d reconciliations without an update", n)
	}
	w.image("app:2")
	w.rounds(3)
	if got := w.condition("web", v1alpha1.ConditionProgressing); got != "True PodDisruptionBudget" {
		t.Fatalf("Progressing is %q", got)
	}
	if n := look(); n != 2 {
		t.Errorf("%d reconciliations of 2 events while it is held", n)
	}
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 2, CurrentHealthy: 2, ExpectedPods: 2}
	w.check(w.Status().Update(t.Context(), budget))
	w.rounds(20)
	if n := look(); n != 0 || w.updated() != 2 {
		t.Errorf("%d reconciliations after it, %d pods are updated", n, w.updated())
	}
}
