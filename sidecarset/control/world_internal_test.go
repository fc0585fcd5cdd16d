package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/disruptions"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/control/beside"
	"github.com/refit-project/refit/sidecarset/revision"
)

// world is an API server with a SidecarSet, its pods, and the controller.
type world struct {
	client.Client
	t      *testing.T
	r      *reconciler
	now    time.Time
	denied map[string]bool // pods whose updates an admission webhook refuses
	// broken are pods whose application crashes, and since when they are not ready.
	broken map[string]time.Time
	// conflict refuses the next write, as somebody else has written to the pod meanwhile.
	conflict bool
	mutex    sync.Mutex     // of what patch uses
	writes   map[string]int // to pods, by name
	events   chan string
}

func newWorld(t *testing.T, pods int) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, now: time.Now().Truncate(time.Second), denied: map[string]bool{}, broken: map[string]time.Time{}, writes: map[string]int{}}
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set", Generation: 1}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: "log:1"}}}
	objects := []client.Object{set, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	version := &annotation.Version{SidecarSet: "logs", Hashes: revision.HashesOf(&set.Spec), Sidecars: []string{"log"}}
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{"app": "web"}}}
		pod.UID = types.UID(fmt.Sprintf("uid-web-%d", i))
		pod.Spec = corev1.PodSpec{NodeName: "a", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app", Image: "app:1"}, {
			Name: "log", Image: "log:1", Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}},
		}}}
		pod.Annotations = annotation.Write(pod, version, metav1.NewTime(w.now))
		w.run(pod)
		objects = append(objects, pod)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.SidecarSet{}, &corev1.Pod{}).
		WithIndex(&v1beta1.ContainerRecreateRequest{}, beside.RequestsByPod, beside.PodOfRequest).WithInterceptorFuncs(interceptor.Funcs{Patch: w.patch}).Build()
	w.Client = api
	recorder := events.NewFakeRecorder(1000)
	w.events = recorder.Events
	w.r = newReconciler(cached(api), Config{
		Namespace: "refit-system", Workers: 1, Live: w.Client, PrePull: true, Clock: func() time.Time { return w.now }, Recorder: recorder,
		Disruptions: disruptions.NewLedger(func() time.Time { return w.now }),
		Metrics:     prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	return w
}

// cached returns pods as the manager's cache does.
func cached(api client.WithWatch) client.Client {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if pod, ok := object.(*corev1.Pod); ok && err == nil {
				*pod = *trimmer.Of(pod)
			}
			return err
		},
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
}

func (w *world) patch(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	w.mutex.Lock()
	denied, conflict := w.denied[object.GetName()], w.conflict
	w.conflict = false
	if !denied && !conflict {
		w.writes[object.GetName()]++
	}
	w.mutex.Unlock()
	if denied {
		return errors.New("denied by a webhook")
	}
	if conflict {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, object.GetName(), errors.New("kubelet has written"))
	}
	return c.Patch(ctx, object, patch, options...)
}

// run is what kubelet reports of a pod. The image "bad" cannot be pulled.
func (w *world) run(pod *corev1.Pod) {
	ready := corev1.ConditionTrue
	was := pod.Status.ContainerStatuses
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	for i, c := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Image, ContainerID: "containerd://" + c.Name + "-" + c.Image, Ready: true}
		if status.State.Running = &(corev1.ContainerStateRunning{}); c.Image == "bad" {
			status.Ready, status.ImageID, ready = false, "", corev1.ConditionFalse
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}
			if len(was) > i {
				status.ContainerID = was[i].ContainerID
			}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(w.now)}}
	if since, ok := w.broken[pod.Name]; ok {
		pod.Status.ContainerStatuses[0].Ready = false
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		pod.Status.Conditions[0].Status, pod.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(since)
	}
}

// kubelet reports all pods.
func (w *world) kubelet() {
	w.t.Helper()
	for _, pod := range w.pods() {
		conditions := pod.Status.Conditions
		w.run(&pod)
		for _, c := range conditions {
			if c.Type == v1beta1.ConditionSidecarSetUpgradable {
				pod.Status.Conditions = append(pod.Status.Conditions, c)
			}
		}
		w.check(w.Status().Update(w.t.Context(), &pod))
	}
}

func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	w.check(w.List(w.t.Context(), &list))
	return list.Items
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// look shows all pods to the controller, as a watch does, and reconciles.
func (w *world) look() {
	w.t.Helper()
	for _, s := range w.r.all() {
		w.check(w.r.observeAll(w.t.Context(), s))
	}
	w.reconcile()
}

// reconcile returns when the controller looks again by itself; zero for never.
func (w *world) reconcile() time.Duration {
	w.t.Helper()
	w.r.live.Client, w.r.reporter.Client = w.r.client, w.r.client // a test may have replaced it
	result, err := conflict.Reconciler(w.r).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "logs"}})
	w.check(err)
	return result.RequeueAfter
}

// rounds lets controller and kubelets act in turn.
func (w *world) rounds(n int) {
	w.t.Helper()
	for range n {
		w.look()
		w.kubelet()
		w.now = w.now.Add(time.Second)
	}
	w.look()
}

func (w *world) set() *v1beta1.SidecarSet {
	w.t.Helper()
	var set v1beta1.SidecarSet
	w.check(w.Get(w.t.Context(), client.ObjectKey{Name: "logs"}, &set))
	return &set
}

func (w *world) change(change func(*v1beta1.SidecarSetSpec)) {
	w.t.Helper()
	set := w.set()
	change(&set.Spec)
	set.Generation++
	w.check(w.Update(w.t.Context(), set))
}

func (w *world) images() map[string]int {
	w.t.Helper()
	images := map[string]int{}
	for _, pod := range w.pods() {
		images[pod.Spec.Containers[1].Image]++
	}
	return images
}

func image(image string) func(*v1beta1.SidecarSetSpec) {
	return func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image = image }
}

func (w *world) condition(kind, want string) {
	w.t.Helper()
	if c := meta.FindStatusCondition(w.set().Status.Conditions, kind); c == nil || string(c.Status)+" "+c.Reason != want {
		w.t.Errorf("condition %s: %+v, want %s", kind, c, want)
	}
}
