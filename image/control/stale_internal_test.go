package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/stalecache"
)

// What has ended, or whose node has gone, is deleted only as the cache has seen it.
func TestStaleCacheDeletesNothingThatOthersWant(t *testing.T) {
	t.Parallel()
	ended := func() *v1beta1.ImagePullJob {
		return pullJob(func(j *v1beta1.ImagePullJob) {
			j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
			j.Status.CompletionTime = new(metav1.Unix(0, 0))
		})
	}
	for name, tc := range map[string]struct {
		object client.Object
		kept   bool // its user wants to keep it; else it was created again
	}{
		"job that is to be kept":              {object: ended(), kept: true},
		"job that was created again":          {object: ended()},
		"NodeImage that was created again":    {object: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "gone", UID: "before"}}},
		"list of jobs that is to be kept":     {object: endedList(), kept: true},
		"list of jobs that was created again": {object: endedList()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.object.DeepCopyObject().(client.Object))
			look := func() client.Object {
				object := tc.object.DeepCopyObject().(client.Object)
				w.check(w.Get(t.Context(), client.ObjectKeyFromObject(object), object))
				return object
			}
			stale, others := look(), look()
			if tc.kept {
				others.SetLabels(map[string]string{"keep": "yes"})
				w.check(w.Update(t.Context(), others))
			} else {
				w.check(w.Delete(t.Context(), look()))
				others.SetUID("again")
				others.SetResourceVersion("")
				w.check(w.Create(t.Context(), others))
				stale.SetResourceVersion(others.GetResourceVersion()) // so that nothing but the UID tells them apart
			}
			before := look()
			w.api.client = stalecache.Client{Client: w.Client, Object: stale}
			var reconciler reconcile.Reconciler = &jobs{w.api}
			switch stale.(type) {
			case *v1beta1.NodeImage:
				reconciler = &nodeImages{w.api}
			case *v1beta1.ImageListPullJob:
				reconciler = &lists{w.api}
			}
			result, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(stale)})
			if !apierrors.IsConflict(err) {
				t.Errorf("result %+v, error %v; want a conflict", result, err)
			}
			if diff := cmp.Diff(before, look()); diff != "" {
				t.Errorf("it is changed (-before +after):\n%s", diff)
			}
		})
	}
}

func endedList() *v1beta1.ImageListPullJob {
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "l", UID: "list"}}
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
	list.Status.CompletionTime = new(metav1.Unix(0, 0))
	return list
}

// While the cache does not show the last status of a job, a write of another one would be refused.
func TestAJobIsNotWrittenBeforeTheCacheShowsItsLastStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	w.daemon("a", v1beta1.ImagePhaseSucceeded)
	before := w.job("j")
	key := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(before)}
	if _, err := (&jobs{w.api}).Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	written := w.job("j").ResourceVersion
	fresh := w.api.client
	w.api.client = stalecache.Client{Client: w.Client, Object: before}
	result, err := (&jobs{w.api}).Reconcile(t.Context(), key)
	if err != nil || result.RequeueAfter <= 0 || w.job("j").ResourceVersion != written {
		t.Errorf("%+v, %v; version %s, want %s", result, err, w.job("j").ResourceVersion, written)
	}
	w.api.client = fresh
	w.look()
	if got := w.job("j").Status; got.Succeeded != 1 || got.CompletionTime == nil {
		t.Errorf("status %+v", got)
	}
}

// The image was taken off the list, and its job has been replaced by one of somebody else.
func TestJobThatWasCreatedAgainIsNotDeletedWithItsImage(t *testing.T) {
	t.Parallel()
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "l", UID: "list"}}
	list.Spec.Images = []string{"b:v1"}
	stale := pullJob(func(j *v1beta1.ImagePullJob) {
		j.Spec.Image = "a:v1"
		j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(list, v1beta1.GroupVersion().WithKind(v1beta1.KindImageListPullJob))}
	})
	again := pullJob(func(j *v1beta1.ImagePullJob) { j.UID, j.Spec.Image = "again", "a:v1" })
	w := newWorld(t, list, again)
	w.api.client = stalecache.Client{Client: w.Client, Object: stale}
	result, err := (&lists{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(list)})
	if !apierrors.IsConflict(err) {
		t.Errorf("result %+v, error %v; want a conflict", result, err)
	}
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(again), again))
}
