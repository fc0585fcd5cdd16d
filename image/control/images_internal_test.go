package control

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/internal/cache"
)

const secretNamespace = "kruise-daemon-config"

// world is an API server with the controllers, which reconcile when the test says so.
type world struct {
	client.Client
	t   *testing.T
	api *api
	now time.Time
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(types).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.NodeImage{}, &v1beta1.ImagePullJob{}, &v1beta1.ImageListPullJob{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: numberFirstSpec, Update: numberSpec, Patch: numberPatchedSpec}).Build()
	w := &world{Client: c, t: t, now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	w.api = newAPI(Config{
		Nodes: cache.NewNodes(c, c), Live: c, SecretNamespace: secretNamespace, Clock: func() time.Time { return w.now },
		Recorder: events.NewFakeRecorder(100), Logger: slog.New(slog.DiscardHandler),
	}, c)
	w.api.interval = 0
	return w
}

// numberFirstSpec sets metadata.generation, which the client does not do, as the API server does. numberSpec and numberPatchedSpec
// increase it with a spec.
func numberFirstSpec(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	object.SetGeneration(1)
	return c.Create(ctx, object, options...)
}

func numberSpec(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
	object.SetGeneration(object.GetGeneration() + 1)
	return c.Update(ctx, object, options...)
}

func numberPatchedSpec(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := c.Patch(ctx, object, patch, options...)
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed): // in the words of the API server
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	case err != nil:
		return err
	}
	return numberSpec(ctx, c, object)
}

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func pullJob(change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "j", UID: "job"}}
	job.Spec.Image = "game:v1"
	for _, c := range change {
		c(job)
	}
	return job
}

// look reconciles everything until nothing changes any more, at most ten times.
func (w *world) look() {
	w.t.Helper()
	for range 10 {
		before := w.dump()
		var nodes corev1.NodeList
		var objects v1beta1.NodeImageList
		var jobList v1beta1.ImagePullJobList
		var listList v1beta1.ImageListPullJobList
		for _, list := range []client.ObjectList{&nodes, &objects, &jobList, &listList} {
			w.check(w.List(w.t.Context(), list))
		}
		for i := range nodes.Items {
			w.reconcile((&nodeImages{w.api}).Reconcile, &nodes.Items[i])
		}
		for i := range objects.Items {
			w.reconcile((&nodeImages{w.api}).Reconcile, &objects.Items[i])
		}
		for i := range listList.Items {
			w.reconcile((&lists{w.api}).Reconcile, &listList.Items[i])
		}
		for i := range jobList.Items {
			w.reconcile((&jobs{w.api}).Reconcile, &jobList.Items[i])
		}
		w.removeCopies()
		if w.dump() == before {
			return
		}
	}
	w.t.Error("the controllers do not come to rest")
}

func (w *world) reconcile(f func(context.Context, ctrl.Request) (ctrl.Result, error), object client.Object) {
	w.t.Helper()
	if _, err := f(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)}); err != nil {
		w.t.Logf("%s: %v", object.GetName(), err)
	}
}

// removeCopies is what follows when a job has ended or is gone.
func (w *world) removeCopies() {
	w.t.Helper()
	w.reconcile((&secretCopies{w.api}).Reconcile, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: secretNamespace}})
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) dump() string {
	var objects v1beta1.NodeImageList
	var jobList v1beta1.ImagePullJobList
	var listList v1beta1.ImageListPullJobList
	for _, list := range []client.ObjectList{&objects, &jobList, &listList} {
		w.check(w.List(w.t.Context(), list))
	}
	var text strings.Builder
	for _, list := range []any{objects.Items, jobList.Items, listList.Items} {
		text.WriteString(cmp.Diff(nil, list))
	}
	return text.String()
}

func (w *world) job(name string) *v1beta1.ImagePullJob {
	w.t.Helper()
	var job v1beta1.ImagePullJob
	w.check(w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &job))
	return &job
}

func (w *world) nodeImage(name string) *v1beta1.NodeImage {
	w.t.Helper()
	var object v1beta1.NodeImage
	w.check(w.Get(w.t.Context(), client.ObjectKey{Name: name}, &object))
	return &object
}

// daemon is what the daemon of a node writes when all its pulls have ended.
func (w *world) daemon(name string, phase v1beta1.ImagePullPhase) {
	w.t.Helper()
	object := w.nodeImage(name)
	states := map[image.Target]image.State{}
	for _, want := range image.Wanted(object.Spec) {
		states[want.Target] = image.State{Phase: phase, Started: w.now, Completed: w.now, Message: "said so"}
	}
	object.Status = image.Status(object.Spec, states)
	w.check(w.Status().Update(w.t.Context(), object))
}

func TestNodesHaveNodeImages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", map[string]string{"pool": "game"}), node("virtual", map[string]string{"type": "virtual-kubelet"}),
		&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "gone"}},
		&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "fake", Labels: map[string]string{v1beta1.LabelFakeNodeImage: "true"}}})
	w.look()
	var list v1beta1.NodeImageList
	w.check(w.List(t.Context(), &list))
	if len(list.Items) != 2 || w.nodeImage("a").Labels["pool"] != "game" || w.nodeImage("fake") == nil {
		t.Errorf("%+v", list.Items)
	}
	var a corev1.Node
	w.check(w.Get(t.Context(), client.ObjectKey{Name: "a"}, &a))
	a.Labels["pool"] = "shop"
	w.check(w.Update(t.Context(), &a))
	if w.look(); w.nodeImage("a").Labels["pool"] != "shop" {
		t.Errorf("labels %v", w.nodeImage("a").Labels)
	}
}

func TestJobRunsOnSelectedNodesAndCleansUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", map[string]string{"pool": "game"}), node("b", nil), pullJob(func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "game"}}}
		j.Spec.PullSecrets = []string{"registry"}
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(600))
	}), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
	})
	w.look()
	tag := w.nodeImage("a").Spec.Images["game"].Tags
	if len(tag) != 1 || tag[0].OwnerReferences[0].Name != "j" || len(w.nodeImage("b").Spec.Images) != 0 || w.job("j").Status.Active != 1 {
		t.Fatalf("%+v, %+v", w.nodeImage("a").Spec, w.job("j").Status)
	}
	secrets := w.nodeImage("a").Spec.Images["game"].PullSecrets
	var copied corev1.Secret
	w.check(w.Get(t.Context(), client.ObjectKey{Namespace: secrets[0].Namespace, Name: secrets[0].Name}, &copied))
	if copied.Namespace != secretNamespace || copied.Type != corev1.SecretTypeDockerConfigJson {
		t.Errorf("%+v", copied)
	}
	w.daemon("a", v1beta1.ImagePhaseSucceeded)
	w.look()
	if s := w.job("j").Status; s.Succeeded != 1 || !meta.IsStatusConditionTrue(s.Conditions, "Complete") {
		t.Errorf("%+v", s)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(&copied), &copied); !apierrors.IsNotFound(err) {
		t.Errorf("the copy of the Secret is left: %v", err)
	}
	w.now = w.now.Add(time.Hour)
	w.look()
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "j"}, &v1beta1.ImagePullJob{}); !apierrors.IsNotFound(err) {
		t.Errorf("the job is left after its time to live: %v", err)
	}
	if n := len(w.nodeImage("a").Spec.Images); n != 0 {
		t.Errorf("%d images left in the NodeImage", n)
	}
}

func TestMissingPullSecretIsReportedAndNothingIsPulled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob(func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"registry"} }))
	w.look()
	if m := w.job("j").Status.Message; !strings.Contains(m, "registry") || len(w.nodeImage("a").Spec.Images) != 0 {
		t.Errorf("message %q", m)
	}
}

func TestDeletedJobCancelsItsPulls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	w.check(w.Delete(t.Context(), w.job("j")))
	if w.look(); len(w.nodeImage("a").Spec.Images) != 0 {
		t.Errorf("%+v", w.nodeImage("a").Spec)
	}
}

func TestPodSelectorSelectsTheNodesOfPods(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{"app": "game"}}, Spec: corev1.PodSpec{NodeName: "b"}}
	over := pod.DeepCopy() // on the other node
	over.Name, over.Spec.NodeName, over.Status.Phase = "over", "a", corev1.PodFailed
	w := newWorld(t, node("a", nil), node("b", nil), pod, over, pullJob(func(j *v1beta1.ImagePullJob) {
		j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}}
	}))
	w.look()
	if len(w.nodeImage("a").Spec.Images) != 0 || len(w.nodeImage("b").Spec.Images) != 1 {
		t.Error("not on the node of the pod alone")
	}
}
