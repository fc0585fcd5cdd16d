package configchange

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
)

var key = workload{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}

// apiServer is a fake one with the controller.
type apiServer struct {
	client.Client
	t          *testing.T
	reconciler *reconciler
	events     *events.FakeRecorder
	now        time.Time
	secrets    int // reads of Secrets
	refreshed  map[string]string
	fail       error // answer to a write of a status
	refuse     error // answer to the creation of a rollout
}

func newAPIServer(t *testing.T, objects ...client.Object) *apiServer {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	a := &apiServer{t: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), events: events.NewFakeRecorder(100), refreshed: map[string]string{}}
	a.Client = fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).WithStatusSubresource(&v1alpha1.RestartTrigger{}, &v1alpha1.RestartRollout{}, &corev1.Pod{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, secret := o.(*corev1.Secret); secret {
					a.secrets++
				}
				return c.Get(ctx, k, o, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if _, rollout := o.(*v1alpha1.RestartRollout); rollout && a.refuse != nil {
					return a.refuse
				}
				return c.Create(ctx, o, opts...)
			},
			SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
				content, err := patch.Data(o)
				a.refreshed[o.GetName()] = string(content) // the fake client ignores metadata in a patch of the status
				return err
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				if a.fail != nil {
					return a.fail
				}
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	a.reconciler = &reconciler{client: a, live: a, paces: newPaces(2), Config: Config{Clock: func() time.Time { return a.now }, Recorder: a.events, Logger: slog.New(slog.DiscardHandler)}}
	return a
}

// settle reconciles whenever that was asked for, some times at most.
func (a *apiServer) settle() {
	a.t.Helper()
	for range 10 {
		result, err := a.reconciler.Reconcile(a.t.Context(), key)
		if err != nil {
			a.t.Fatal(err)
		}
		if result.RequeueAfter == 0 {
			return
		}
		a.now = a.now.Add(result.RequeueAfter)
	}
}

func (a *apiServer) rollouts() []v1alpha1.RestartRollout {
	a.t.Helper()
	var list v1alpha1.RestartRolloutList
	if err := a.List(a.t.Context(), &list); err != nil {
		a.t.Fatal(err)
	}
	return list.Items
}

func (a *apiServer) trigger() *v1alpha1.RestartTrigger {
	a.t.Helper()
	var list v1alpha1.RestartTriggerList
	if err := a.List(a.t.Context(), &list); err != nil || len(list.Items) > 1 {
		a.t.Fatal(err, list.Items)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// edit changes an object that there is.
func edit[T client.Object](a *apiServer, object T, change func(T)) {
	a.t.Helper()
	if err := a.Get(a.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		a.t.Fatal(err)
	}
	change(object)
	if err := a.Update(a.t.Context(), object); err != nil {
		a.t.Fatal(err)
	}
}

func deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "deployment", Annotations: map[string]string{v1alpha1.AnnotationRestartOnConfigChange: "app"}}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "settings"}}, EnvFrom: []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}},
	}}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
	}}}
	return d
}

func podOf(set, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web", "pod-template-hash": set[strings.LastIndexByte(set, '-')+1:]},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: new(true)}},
	}}
}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}, Data: map[string]string{"a": value}}
}

func secret(value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "password"}, Data: map[string][]byte{"p": []byte(value)}}
}

func TestChangedConfigMapMakesARolloutAfterThePodsVolumesAreUpdated(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"), podOf("web-abc", "web-abc-1"), podOf("canary-abc", "canary-abc-1"))
	a.settle()
	if len(a.rollouts()) != 0 || !metav1.IsControlledBy(a.trigger(), deployment()) {
		t.Fatalf("%+v", a.trigger())
	}
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Labels = map[string]string{"only": "metadata"} })
	a.settle()
	if len(a.rollouts()) != 0 {
		t.Fatal("changed metadata restart nothing")
	}
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
	a.settle()
	if rollouts := a.rollouts(); len(rollouts) != 1 || rollouts[0].Annotations[v1alpha1.AnnotationTrigger] != "ConfigMap/settings" {
		t.Fatalf("%+v", rollouts)
	}
	want := map[string]string{"web-abc-1": `{"metadata":{"annotations":{"refit.dev/config-refresh":"` + a.rollouts()[0].Name + `"}}}`}
	if diff := cmp.Diff(want, a.refreshed); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedRolloutIsAnEventAndTheChangeIsKept(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
	a.refuse = apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource("restartrollouts").GroupResource(), "web", errors.New("quota"))
	var err error
	for range 10 {
		var result ctrl.Result
		if result, err = a.reconciler.Reconcile(t.Context(), key); err != nil {
			break
		}
		a.now = a.now.Add(result.RequeueAfter)
	}
	if err == nil || a.trigger().Status.Pending == nil || a.trigger().Status.LastRollout != "" {
		t.Fatalf("%v, %+v", err, a.trigger().Status)
	}
	if event := <-a.events.Events; !strings.Contains(event, "RolloutRefused") || !strings.Contains(event, "quota") {
		t.Error(event)
	}
	a.refuse = nil
	a.settle()
	if len(a.rollouts()) != 1 {
		t.Errorf("%d rollouts once they are allowed", len(a.rollouts()))
	}
}

func TestSecretsAreReadOnlyWhereThatIsTurnedOn(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), secret("x"))
	a.settle()
	edit(a, secret(""), func(o *corev1.Secret) { o.Data["p"] = []byte("y") })
	before := a.secrets
	a.settle()
	if len(a.rollouts()) != 0 || a.secrets != before || a.secrets != 1 {
		t.Fatalf("%d rollouts, %d reads", len(a.rollouts()), a.secrets)
	}
	a.reconciler.Secrets = true
	a.settle()
	edit(a, secret(""), func(o *corev1.Secret) { o.Data["p"] = []byte("z") })
	a.settle()
	if rollouts := a.rollouts(); len(rollouts) != 1 || rollouts[0].Annotations[v1alpha1.AnnotationTrigger] != "Secret/password" {
		t.Errorf("%+v", rollouts)
	}
}

func TestChangeWaitsForTheRolloutOfTheWorkload(t *testing.T) {
	t.Parallel()
	running := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "manual"}}
	running.Spec.TargetRef = new(key.reference())
	a := newAPIServer(t, deployment(), configMap("1"), running)
	a.settle()
	edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
	a.settle()
	if len(a.rollouts()) != 1 {
		t.Fatalf("%+v", a.rollouts())
	}
	running.Status.CompletionTime = &metav1.Time{Time: a.now}
	if err := a.Status().Update(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	a.settle()
	if len(a.rollouts()) != 2 {
		t.Errorf("%+v", a.rollouts())
	}
}

func TestTriggerIsDeletedWithTheAnnotation(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	a.settle()
	edit(a, deployment(), func(o *appsv1.Deployment) { o.Annotations = nil })
	a.settle()
	if a.trigger() != nil {
		t.Errorf("%+v", a.trigger())
	}
}

func TestWrongAnnotationIsReported(t *testing.T) {
	t.Parallel()
	wrong := deployment()
	wrong.Annotations[v1alpha1.AnnotationRestartOnConfigChange] = "nope"
	a := newAPIServer(t, wrong)
	a.settle()
	if c := a.trigger().Status.Conditions[0]; c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, `no container "nope"`) {
		t.Errorf("%+v", c)
	}
	if event := <-a.events.Events; !strings.Contains(event, "InvalidAnnotation") {
		t.Error(event)
	}
}

func TestMetadataIsTrimmed(t *testing.T) {
	t.Parallel()
	in := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{"other": strings.Repeat("x", 100000), v1alpha1.AnnotationRestartOnConfigChange: "app"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}}
	out, err := trim(in)
	if got := out.(*metav1.PartialObjectMetadata); err != nil || len(got.Annotations) != 1 || got.Labels != nil || got.ManagedFields != nil || got.Generation != 3 || got.ResourceVersion != "7" {
		t.Errorf("%v, %+v", err, out)
	}
}
