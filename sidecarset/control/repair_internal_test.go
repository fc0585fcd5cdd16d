package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// miss creates pods of a ReplicaSet that were not injected.
func (w *world) miss(names ...string) {
	w.t.Helper()
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(w.now),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}},
		}}
		pod.Spec = corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}
		w.run(pod)
		w.check(w.Create(w.t.Context(), pod))
	}
}

func (w *world) missing() string {
	w.t.Helper()
	var names []string
	for _, pod := range w.pods() {
		if len(pod.Spec.Containers) == 1 {
			names = append(names, pod.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestPodsThatWereNotInjectedAreCountedWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.miss("missed")
	w.look()
	if s := w.set().Status; s.NotInjectedPods != 1 || s.MatchedPods != 2 {
		t.Errorf("%+v", s)
	}
	w.condition(v1beta1.ConditionDegraded, "True NotInjected")
	message := meta.FindStatusCondition(w.set().Status.Conditions, v1beta1.ConditionDegraded).Message
	if message != "1 pod was not injected, as shop/missed: refit-manager could not be reached when the pod was created" {
		t.Errorf("message %q", message)
	}
	if event := <-w.events; !strings.Contains(event, "NotInjected") {
		// The first Event is of the rollout.
		if event = <-w.events; !strings.Contains(event, "NotInjected") {
			t.Errorf("event %s", event)
		}
	}
	w.check(w.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "missed"}}))
	s := w.r.find("logs")
	s.remove(types.NamespacedName{Namespace: "shop", Name: "missed"}, "uid-missed")
	w.look()
	w.condition(v1beta1.ConditionDegraded, "False AsExpected")
}

// Under OpenKruise's CRD the API server drops repairPolicy, and the manager has no right to evict unless somebody gives it.
func TestNothingIsEvictedUnlessTheSidecarSetAsksForIt(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*v1beta1.SidecarSetSpec){
		func(*v1beta1.SidecarSetSpec) {},
		func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairNone },
		func(s *v1beta1.SidecarSetSpec) {
			s.InjectionStrategy.RepairPolicy, s.InjectionStrategy.Paused = v1beta1.RepairEvict, true
		},
		func(s *v1beta1.SidecarSetSpec) {
			s.InjectionStrategy.RepairPolicy, s.InjectionStrategy.Engine = v1beta1.RepairEvict, v1beta1.EnginePolicy
		},
	} {
		w := newWorld(t, 1)
		w.change(change)
		w.miss("a", "b")
		w.rounds(3)
		if got := w.missing(); got != "a b" {
			t.Errorf("left are %s", got)
		}
	}
}

func TestPodsThatWereNotInjectedAreEvictedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.change(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict })
	w.miss("a", "b", "c")
	w.rounds(4)
	if got := w.missing(); got != "b c" {
		t.Fatalf("left are %q before there is a replacement", got)
	}
	told := false
	for _, text := range w.said() {
		told = told || text == "Normal EvictedForInjection SidecarSet logs was not injected: refit-manager could not be reached when the pod was created"
	}
	if !told {
		t.Error("there is no Event about the eviction")
	}
	w.change(image("log:2")) // which does not make it forget the eviction
	w.rounds(4)
	if got := w.missing(); got != "b c" {
		t.Fatalf("left are %q after a change of the spec", got)
	}
	for i, want := range []string{"c", ""} {
		w.replace(fmt.Sprintf("new-%d", i))
		w.rounds(4)
		if got := w.missing(); got != want {
			t.Fatalf("left are %q after a replacement, want %q", got, want)
		}
	}
	w.replace("new-2")
	w.rounds(2)
	w.condition(v1beta1.ConditionDegraded, "False AsExpected")
}

// The cache has only a part of a pod: enough to see that it would not be injected if it were created again.
func TestPodThatIsNotToBeEvictedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Pod){
		"it has the sidecars": func(pod *corev1.Pod) { pod.Annotations = nil },
		"it was skipped": func(pod *corev1.Pod) {
			pod.Spec.Containers = pod.Spec.Containers[:1]
			pod.Annotations = map[string]string{v1beta1.AnnotationSidecarSetSkipped: `{"logs":"` + strings.Repeat("x", 300) + `"}`}
		},
	} {
		w := newWorld(t, 1)
		w.r.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				err := c.List(ctx, list, options...)
				if pods, ok := list.(*corev1.PodList); ok {
					for i := range pods.Items {
						pods.Items[i] = *trimmer.Of(&pods.Items[i])
					}
				}
				return err
			},
		})
		w.change(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict })
		w.replace("a")
		var pod corev1.Pod
		w.check(w.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "a"}, &pod))
		change(&pod)
		w.check(w.Update(t.Context(), &pod))
		w.miss("b")
		w.rounds(3)
		var left []string
		for _, pod := range w.pods() {
			left = append(left, pod.Name)
		}
		if got := strings.Join(left, " "); got != "a web-0" {
			t.Errorf("%s: left are %s", name, got)
		}
	}
}

// replace creates an injected pod of the ReplicaSet.
func (w *world) replace(name string) {
	w.t.Helper()
	var first corev1.Pod
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-0"}, &first))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: first.Labels, Annotations: first.Annotations, CreationTimestamp: metav1.NewTime(w.now),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}},
	}, Spec: first.Spec}
	w.run(pod)
	w.check(w.Create(w.t.Context(), pod))
}

// A PodDisruptionBudget that allows nothing: the eviction is tried again later, and said.
func TestARefusedEvictionIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tried := 0
	w.r.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, c client.Client, subresource string, object, body client.Object, options ...client.SubResourceCreateOption) error {
			if tried++; tried == 1 {
				return apierrors.NewTooManyRequests("the budget does not allow it", 0)
			}
			return c.SubResource(subresource).Create(ctx, object, body, options...)
		},
	})
	w.change(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict })
	w.miss("a")
	w.rounds(5)
	if got := w.missing(); got != "a" || tried != 1 {
		t.Fatalf("left are %q after %d tries", got, tried)
	}
	found := false
	for len(w.events) > 0 {
		found = strings.Contains(<-w.events, "RepairFailed") || found
	}
	if !found {
		t.Error("nobody is told")
	}
	w.now = w.now.Add(time.Minute)
	w.rounds(1)
	if got := w.missing(); got != "" || tried != 2 {
		t.Errorf("left are %q after %d tries", got, tried)
	}
}
