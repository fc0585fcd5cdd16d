package control

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	crradmission "github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/internal/cache"
)

var (
	noon    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	key     = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "r"}}
	discard = slog.New(slog.DiscardHandler)
)

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	types := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(types), v1alpha1.AddToScheme(types), v1beta1.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	return types
}

func testPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-1"}}
	pod.Spec = corev1.PodSpec{
		NodeName: "node-1", Containers: []corev1.Container{{Name: "app"}},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}},
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://app1"}}
	return pod
}

func testNode() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}} }

// daemonPod is the ready refit-daemon of node-1.
func daemonPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "refit-system", Name: "refit-daemon-x", Labels: map[string]string{"app.kubernetes.io/name": "refit-daemon"},
	}}
	pod.Spec.NodeName = "node-1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}

func userRequest() *v1beta1.ContainerRecreateRequest {
	request := &v1beta1.ContainerRecreateRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindContainerRecreateRequest},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r", Annotations: map[string]string{v1beta1.AnnotationReason: "node pressure"}},
	}
	request.Spec.PodName = "web"
	request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}
	return request
}

// storedRequest is what a user's request is after admission.
func storedRequest(t *testing.T) *v1beta1.ContainerRecreateRequest {
	t.Helper()
	request, err := crradmission.Admit(userRequest(), crradmission.Observation{Pod: testPod(), Node: &metav1.ObjectMeta{Name: "node-1"}, User: "alice", Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	request.UID, request.Generation, request.CreationTimestamp = "uid-r", 1, metav1.NewTime(noon)
	return request
}

// apiServer is a fake API server that records writes, and a reconciler that uses it.
type apiServer struct {
	client.Client
	t          *testing.T
	writes     []string
	reconciler *lifecycleReconciler
	events     *events.FakeRecorder
	now        time.Time
}

func newAPIServer(t *testing.T, objects ...client.Object) *apiServer {
	t.Helper()
	w := &apiServer{t: t, now: noon.Add(time.Second), events: events.NewFakeRecorder(10)}
	w.Client = fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(append(objects, daemonPod())...).
		WithIndex(&corev1.Pod{}, cache.PodsByNode, cache.NodeOfPod).WithStatusSubresource(&v1beta1.ContainerRecreateRequest{}, &corev1.Pod{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				w.writes = append(w.writes, "patch "+o.GetName())
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				w.writes = append(w.writes, "patch "+o.GetName()+"/"+sub)
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				w.writes = append(w.writes, "delete "+o.GetName())
				return c.Delete(ctx, o, opts...)
			},
		}).Build()
	w.reconciler = &lifecycleReconciler{
		client: w, live: w, nodes: cache.NewNodes(w, w), daemons: newDaemons(cache.Daemons{Refit: "refit-system", Kruise: "kruise-system"}, w), recorder: w.events, now: func() time.Time { return w.now }, log: discard,
	}
	return w
}

// settle reconciles until nothing is written, and returns the writes and when the request is reconciled again.
func (w *apiServer) settle() ([]string, time.Duration) {
	w.t.Helper()
	w.writes = nil
	for range 10 {
		before := len(w.writes)
		result, err := w.reconciler.Reconcile(w.t.Context(), key)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(w.writes) == before {
			return slices.Clone(w.writes), result.RequeueAfter
		}
	}
	w.t.Fatalf("never done: %q", w.writes)
	return nil, 0
}

// change edits the stored request as a daemon or a user would.
func (w *apiServer) change(edit func(*v1beta1.ContainerRecreateRequest)) {
	w.t.Helper()
	request := w.request()
	edit(request)
	if err := w.Client.Status().Update(w.t.Context(), request); err != nil {
		w.t.Fatal(err)
	}
}

// edit changes the labels or the spec of the stored request, as a user would.
func (w *apiServer) edit(edit func(*v1beta1.ContainerRecreateRequest)) {
	w.t.Helper()
	request := w.request()
	edit(request)
	if err := w.Update(w.t.Context(), request); err != nil {
		w.t.Fatal(err)
	}
}

func (w *apiServer) request() *v1beta1.ContainerRecreateRequest {
	w.t.Helper()
	var request v1beta1.ContainerRecreateRequest
	if err := w.Get(w.t.Context(), key.NamespacedName, &request); err != nil {
		w.t.Fatal(err)
	}
	return &request
}

func (w *apiServer) pod() *corev1.Pod {
	w.t.Helper()
	var pod corev1.Pod
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &pod); err != nil {
		w.t.Fatal(err)
	}
	return &pod
}

// taken is what a refit-daemon writes first, recreated what it writes last.
func taken(r *v1beta1.ContainerRecreateRequest) {
	r.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending}}
	r.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: crr.ReasonAccepted, LastTransitionTime: metav1.NewTime(noon),
	}}
}

func recreated(r *v1beta1.ContainerRecreateRequest) {
	r.Status.ContainerRecreateStates[0].Phase = v1beta1.ContainerRecreateRequestSucceeded
	crr.Complete(&r.Status, crr.Outcome{}, 1, noon.Add(2*time.Second))
}
