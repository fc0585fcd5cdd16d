package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/disruptions"
)

var (
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	key  = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}}
)

// apiServer is a fake one with the controller.
type apiServer struct {
	client.Client
	t          *testing.T
	reconciler *reconciler
	events     *events.FakeRecorder
	now        time.Time
	writes     int
	refuse     error // answer to a create
	refused    int
	conflict   bool // answer to a write of a status
}

func newAPIServer(t *testing.T, objects ...client.Object) *apiServer {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), policyv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	a := &apiServer{t: t, now: noon, events: events.NewFakeRecorder(100)}
	a.Client = fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.RestartRollout{}, &v1alpha1.RestartSchedule{}, &v1beta1.ContainerRecreateRequest{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if a.refuse != nil {
					a.refused++
					return a.refuse
				}
				a.writes++
				return c.Create(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				a.writes++
				if a.conflict {
					return apierrors.NewConflict(v1alpha1.GroupVersion().WithResource("restartrollouts").GroupResource(), o.GetName(), errors.New("changed"))
				}
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	cached := interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if o := (&client.ListOptions{}).ApplyOptions(opts); o.Continue != "" || o.Limit > 0 || o.Raw != nil {
				return fmt.Errorf("a cache does not list in pages: %+v", o)
			}
			for _, option := range opts {
				if _, pages := option.(client.Continue); pages {
					return errors.New("continue list option is not supported by the cache")
				}
			}
			return c.List(ctx, list, opts...)
		},
	})
	a.reconciler = &reconciler{
		client: cached, live: a, ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"outcome", "reason", "trigger"}),
		Config: Config{Clock: func() time.Time { return a.now }, Recorder: a.events, Logger: slog.New(slog.DiscardHandler)},
	}
	a.reconciler.Disruptions = disruptions.NewLedger(a.reconciler.Clock)
	return a
}

func (a *apiServer) settle() {
	a.t.Helper()
	for range 20 {
		before := a.writes
		if _, err := a.reconciler.Reconcile(a.t.Context(), key); err != nil {
			a.t.Fatal(err)
		}
		if a.writes == before {
			return
		}
	}
	a.t.Fatal("does not come to rest")
}

func (a *apiServer) rollout() *v1alpha1.RestartRollout {
	a.t.Helper()
	var object v1alpha1.RestartRollout
	if err := a.Get(a.t.Context(), key.NamespacedName, &object); err != nil {
		a.t.Fatal(err)
	}
	return &object
}

func (a *apiServer) requests() []v1beta1.ContainerRecreateRequest {
	a.t.Helper()
	var list v1beta1.ContainerRecreateRequestList
	if err := a.List(a.t.Context(), &list); err != nil {
		a.t.Fatal(err)
	}
	return list.Items
}

func (a *apiServer) pods() []string {
	var names []string
	for _, request := range a.requests() {
		names = append(names, request.Spec.PodName)
	}
	return names
}

// complete ends all requests, and shows in the pods that their containers are new.
func (a *apiServer) complete(outcome crr.Outcome) {
	a.t.Helper()
	for _, request := range a.requests() {
		crr.Complete(&request.Status, outcome, 1, a.now)
		if err := a.Status().Update(a.t.Context(), &request); err != nil {
			a.t.Fatal(err)
		}
	}
}

func deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "deployment"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return d
}

func podOf(set string, i int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", set, i)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		Labels:          map[string]string{"app": "web", "pod-template-hash": set[strings.LastIndexByte(set, '-')+1:]},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: new(true)}},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}

func object(change ...func(*v1alpha1.RestartRolloutSpec)) *v1alpha1.RestartRollout {
	o := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "rollout", CreationTimestamp: metav1.NewTime(noon)}}
	o.Spec.TargetRef = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	o.Spec.Containers = v1alpha1.RolloutContainers("app")
	for _, c := range change {
		c(&o.Spec)
	}
	return o
}
