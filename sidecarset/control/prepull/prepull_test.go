package prepull_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/control/prepull"
)

// world is an API server with pods on the nodes b, a and b, one without a node, and the Puller.
type world struct {
	*testing.T
	client.WithWatch
	now    time.Time
	puller *prepull.Puller
	pods   []types.NamespacedName
	writes []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, now: time.Unix(1e9, 0)}
	build := fake.NewClientBuilder().WithScheme(scheme)
	for i, node := range []string{"b", "a", "", "b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}, Spec: corev1.PodSpec{NodeName: node}}
		w.pods = append(w.pods, client.ObjectKeyFromObject(pod))
		build.WithObjects(pod)
	}
	w.pods = append(w.pods, types.NamespacedName{Namespace: "shop", Name: "gone"})
	w.WithWatch = build.Build()
	w.puller = &prepull.Puller{Client: w.WithWatch, Namespace: "refit-system", Clock: func() time.Time { return w.now }, Written: func(resource, doing string, err error) error {
		w.writes = append(w.writes, resource)
		return err
	}}
	return w
}

func (w *world) pull(images ...string) (bool, error) {
	w.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log", UID: "uid"}}
	set.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "first"}, {Name: "second"}}
	return w.puller.Pull(w.Context(), set, "log-1", images, func() []types.NamespacedName { return w.pods })
}

func (w *world) jobs() []v1beta1.ImagePullJob {
	w.Helper()
	var list v1beta1.ImagePullJobList
	if err := w.List(w.Context(), &list); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

func TestAnImagePullJobIsOfTheSidecarSetAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if done, err := w.pull("log:1"); done || err != nil || len(w.jobs()) != 1 {
		t.Fatalf("%t, %v, %d jobs", done, err, len(w.jobs()))
	}
	got := w.jobs()[0]
	want := v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "refit-system", Labels: map[string]string{v1beta1.LabelSidecarSetName: "log"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "SidecarSet", Name: "log", UID: "uid", Controller: new(true), BlockOwnerDeletion: new(true)}},
	}}
	want.Spec.Image, want.Spec.PullSecrets = "log:1", []string{"first", "second"}
	want.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{"a", "b"}}
	want.Spec.Parallelism = new(intstr.FromInt32(50))
	want.Spec.CompletionPolicy = v1beta1.CompletionPolicy{Type: v1beta1.CompletionAlways, ActiveDeadlineSeconds: new(int64(600)), TTLSecondsAfterFinished: new(int32(3600))}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Name", "ResourceVersion"), cmpopts.IgnoreFields(metav1.TypeMeta{}, "Kind", "APIVersion")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if done, err := w.pull("log:1"); done || err != nil || len(w.writes) != 1 {
		t.Errorf("again: %t, %v, writes %v", done, err, w.writes)
	}
}

func TestAllImagesAreWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := func(image string) {
		for _, job := range w.jobs() {
			if job.Spec.Image != image {
				continue
			}
			job.Status.CompletionTime = &metav1.Time{Time: w.now}
			if err := w.Update(t.Context(), &job); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		ends string
		want bool
	}{{"", false}, {"log:2", false}, {"log:1", true}} {
		end(step.ends)
		if done, err := w.pull("log:1", "log:2"); done != step.want || err != nil || len(w.jobs()) != 2 {
			t.Errorf("after %q: %t, %v, %d jobs", step.ends, done, err, len(w.jobs()))
		}
	}
	if done, err := w.pull(); !done || err != nil {
		t.Errorf("without an image: %t, %v", done, err)
	}
}

// A node that does not have the image after that time pulls it when the container is replaced.
func TestAnImagePullJobIsNotWaitedForLongerThanTenMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.pull("log:1"); err != nil {
		t.Fatal(err)
	}
	job := w.jobs()[0]
	if err := w.Delete(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	job.ResourceVersion, job.CreationTimestamp = "", metav1.NewTime(w.now)
	if err := w.Create(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{10 * time.Minute, false}, {10*time.Minute + time.Second, true}} {
		w.now = time.Unix(1e9, 0).Add(step.after)
		if done, err := w.pull("log:1"); done != step.want || err != nil {
			t.Errorf("after %s: %t, %v", step.after, done, err)
		}
	}
}

func TestNothingIsPulledForPodsWithoutANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pods = []types.NamespacedName{w.pods[2], w.pods[4]}
	if done, err := w.pull("log:1"); !done || err != nil || len(w.jobs()) != 0 {
		t.Errorf("%t, %v, %d jobs", done, err, len(w.jobs()))
	}
}

func TestOnlyWhatWillNeverBeThereIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupResource{Resource: "imagepulljobs"}
	for name, tt := range map[string]struct {
		err        error
		done, told bool
	}{
		"forbidden":           {apierrors.NewForbidden(jobs, "", nil), true, true},
		"not valid":           {apierrors.NewInvalid(schema.GroupKind{}, "", nil), true, true},
		"denied by a webhook": {apierrors.NewBadRequest("no"), true, true},
		"no such resource":    {apierrors.NewNotFound(jobs, ""), true, true},
		"another was faster":  {apierrors.NewAlreadyExists(jobs, ""), false, false},
		"for now":             {apierrors.NewInternalError(errors.New("down")), false, true},
	} {
		w := newWorld(t)
		w.puller.Client = interceptor.NewClient(w.WithWatch, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tt.err }})
		if done, err := w.pull("log:1"); done != tt.done || (err != nil) != tt.told || len(w.writes) != 1 {
			t.Errorf("%s: %t, %v, writes %v", name, done, err, w.writes)
		}
	}
}

// A pod that cannot be read may be on a node that has the image not yet.
func TestNothingIsPulledBeforeAllPodsAreRead(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(client.Object) bool{
		"pods": func(o client.Object) bool { _, ok := o.(*corev1.Pod); return ok },
		"jobs": func(o client.Object) bool { _, ok := o.(*v1beta1.ImagePullJob); return ok },
	} {
		w := newWorld(t)
		w.puller.Client = interceptor.NewClient(w.WithWatch, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if of(object) {
				return errors.New("the cache is away")
			}
			return c.Get(ctx, key, object, options...)
		}})
		if done, err := w.pull("log:1"); done || err == nil || len(w.jobs()) != 0 {
			t.Errorf("%s: %t, %v, %d jobs", name, done, err, len(w.jobs()))
		}
	}
}
