package turn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/inplace/cli/turn"
	"github.com/refit-project/refit/rollout/budget"
)

// world is an API server with a ReplicaSet of three pods that are ready.
type world struct {
	client.Client
	t    *testing.T
	mu   sync.Mutex
	said []string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), policyv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set"}}
	set.Spec.Replicas = new(int32(3))
	objects = append(objects, set)
	for i := range 3 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "set", Controller: new(true)}},
		}}
		pod.Spec.Containers = []corev1.Container{{Name: "app"}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		objects = append(objects, pod)
	}
	w := &world{t: t}
	w.Client = fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).WithStatusSubresource(&v1beta1.ContainerRecreateRequest{}).Build()
	return w
}

func (w *world) pod(ctx context.Context, i int) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	if err := w.Get(ctx, client.ObjectKey{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}, pod); err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// take is a process that takes out a pod.
func (w *world) take(ctx context.Context, i int) (release func(context.Context), err error) {
	return turn.Take(ctx, turn.Config{
		API: w, By: fmt.Sprintf("process of %d", i), MaxUnavailable: intstr.FromInt32(1), Clock: time.Now,
		Say: func(what string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.said = append(w.said, what)
		},
	}, w.pod(ctx, i))
}

func (w *world) hasSaid(words string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(strings.Join(w.said, "\n"), words)
}

func TestAProcessAloneHoldsItsTurnUntilItReleasesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release, err := w.take(t.Context(), 1)
		if claim := budget.ClaimOn(w.pod(t.Context(), 1), time.Now()); err != nil || claim == nil || !claim.Holding || len(w.said) > 0 {
			t.Fatalf("%v, %+v, %v", err, claim, w.said)
		}
		release(t.Context())
		if text, ok := w.pod(t.Context(), 1).Annotations[v1beta1.AnnotationDisruptionClaim]; ok {
			t.Errorf("left: %s", text)
		}
		release(t.Context()) // does nothing
	})
}

func TestAProcessWaitsForWhatOthersDoAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-hand"}}
		request.Spec.PodName = "web-0"
		w := newWorld(t, request)
		began := time.Now()
		time.AfterFunc(30*time.Second, func() {
			crr.Complete(&request.Status, crr.Outcome{}, 1, time.Now())
			if err := w.Status().Update(t.Context(), request); err != nil {
				t.Error(err)
			}
		})
		_, err := w.take(t.Context(), 1)
		if took := time.Since(began); err != nil || took < 30*time.Second || took > 35*time.Second || !w.hasSaid("pod web-1 waits") {
			t.Errorf("%v, after %s: %v", err, took, w.said)
		}
	})
}

func TestTwoProcessesTakeOutOnePodAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var out, most int
		var mu sync.Mutex
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			out += n
			most = max(most, out)
		}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				release, err := w.take(t.Context(), i)
				if err != nil {
					t.Error(err)
				}
				count(1)
				time.Sleep(20 * time.Second)
				count(-1)
				release(t.Context())
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d pods were out at a time", most)
		}
	})
}

func TestAnInterruptedProcessLeavesNoClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		strict := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "strict"}}
		strict.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		w := newWorld(t, strict)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // the claim is renewed meanwhile
		defer cancel()
		_, err := w.take(ctx, 1)
		if !errors.Is(err, context.DeadlineExceeded) || !w.hasSaid("PodDisruptionBudget strict allows no more disruptions") {
			t.Errorf("%v: %v", err, w.said)
		}
		if text, ok := w.pod(t.Context(), 1).Annotations[v1beta1.AnnotationDisruptionClaim]; ok {
			t.Errorf("left: %s", text)
		}
	})
}

func TestTheClaimOfAProcessThatHasDiedEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.take(t.Context(), 0); err != nil { // it never releases
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := w.take(t.Context(), 1); err != nil || time.Since(began) < budget.ClaimFor-time.Second || time.Since(began) > budget.ClaimFor+5*time.Second {
			t.Errorf("%v, after %s", err, time.Since(began))
		}
	})
}

// The pod is under way already. Several commands for one pod add up, also while a container of the first does not start.
func TestASecondProcessForTheSamePodGoesWithTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		before := w.pod(t.Context(), 1).Annotations[v1beta1.AnnotationDisruptionClaim]
		release, err := turn.Take(t.Context(), turn.Config{API: w, By: "another", MaxUnavailable: intstr.FromInt32(1), Clock: time.Now}, w.pod(t.Context(), 1))
		if err != nil || !turn.Held(w.pod(t.Context(), 1), time.Now()) {
			t.Error(err)
		}
		release(t.Context())
		if after := w.pod(t.Context(), 1).Annotations[v1beta1.AnnotationDisruptionClaim]; after != before {
			t.Errorf("the claim of the first has become %q", after)
		}
	})
}

func TestASecondProcessForTheSamePodWaitsWhileTheFirstDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release, err := w.take(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Second, func() { release(t.Context()) })
		began := time.Now()
		var all sync.WaitGroup
		for _, by := range []string{"one", "another"} {
			all.Go(func() {
				_, err := turn.Take(t.Context(), turn.Config{API: w, By: by, MaxUnavailable: intstr.FromInt32(1), Clock: time.Now}, w.pod(t.Context(), 1))
				if took := time.Since(began); err != nil || took < 20*time.Second || took > 30*time.Second {
					t.Errorf("%s: %v, after %s", by, err, took)
				}
			})
		}
		all.Wait()
	})
}

// For example while it is being scaled down, or a DaemonSet creates pods before it deletes others.
func TestAPodThatIsNotReadyAndThatTheWorkloadNeedNotHaveDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		if err := w.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))); err != nil {
			t.Fatal(err)
		}
		surplus := w.pod(t.Context(), 0)
		surplus.Status.Conditions[0].Status = corev1.ConditionFalse
		if err := w.Status().Update(t.Context(), surplus); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.take(ctx, 1); err != nil {
			t.Errorf("%v: %v", err, w.said)
		}
	})
}

func TestAPodThatTheWorkloadLacksCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.Delete(t.Context(), w.pod(t.Context(), 0)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.take(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || !w.hasSaid("pod web-1 waits: as many pods") {
			t.Errorf("%v: %v", err, w.said)
		}
	})
}
