package control

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/test/kit/stalecache"
)

// fallBehind keeps the cache as it is now, while the daemon goes on.
func (w *world) fallBehind(name string) {
	w.t.Helper()
	w.api.client = stalecache.Client{Client: w.Client, Object: w.nodeImage(name)}
	w.daemon(name, v1beta1.ImagePhasePulling)
}

func TestDeletedJobCancelsItsPullsWhileTheDaemonWritesItsStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	w.check(w.Delete(t.Context(), w.job("j")))
	w.fallBehind("a")
	result, err := (&nodeImages{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if n := len(w.nodeImage("a").Spec.Images); err != nil || n != 0 {
		t.Errorf("%d images are left, %+v, %v", n, result, err)
	}
}

// slowLookUp is an API server that answers so slowly whether a job exists that the daemon writes its status meanwhile.
type slowLookUp struct {
	client.Reader
	world *world
}

func (s *slowLookUp) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*v1beta1.ImagePullJob); ok {
		s.world.daemon("a", v1beta1.ImagePhasePulling) //nolint:contextcheck // the daemon has a context of its own
	}
	return s.Reader.Get(ctx, key, object, options...)
}

func TestDeletedJobCancelsItsPullsWhileLookUpsAreSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	w.check(w.Delete(t.Context(), w.job("j")))
	w.api.Live = &slowLookUp{w.api.Live, w}
	result, err := (&nodeImages{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if n := len(w.nodeImage("a").Spec.Images); err != nil || n != 0 {
		t.Errorf("%d images are left, %+v, %v", n, result, err)
	}
}

// slowServer takes a second to read a NodeImage, and counts conflicts.
type slowServer struct {
	client.Client
	conflicts atomic.Int32
}

func (s *slowServer) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := s.Client.Get(ctx, key, object, options...)
	if _, ok := object.(*v1beta1.NodeImage); ok {
		time.Sleep(time.Second) // of synctest
	}
	return err
}

func (s *slowServer) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := s.Client.Patch(ctx, object, patch, options...)
	if err != nil {
		s.conflicts.Add(1)
	}
	return err
}

// busyDaemon writes the status of a NodeImage again between each read and write of the manager, as daemons do while images are
// pulled and the API server is slow.
type busyDaemon struct {
	client.Client
	world *world
}

func (b *busyDaemon) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	b.world.daemon(object.GetName(), v1beta1.ImagePhasePulling) //nolint:contextcheck // the daemon has a context of its own
	return b.Client.Patch(ctx, object, patch, options...)
}

func (b *busyDaemon) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	b.world.daemon(object.GetName(), v1beta1.ImagePhasePulling) //nolint:contextcheck // the daemon has a context of its own
	return b.Client.Update(ctx, object, options...)
}

func TestWritesOfTheDaemonDoNotConflictWithThoseOfTheManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	w.check(w.Delete(t.Context(), w.job("j")))
	w.api.client = &busyDaemon{w.Client, w}
	result, err := (&nodeImages{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if n := len(w.nodeImage("a").Spec.Images); err != nil || n != 0 {
		t.Errorf("%d images are left, %+v, %v", n, result, err)
	}
}

// TestChangeOfAnotherManagerIsKept has another manager add an image between read and write.
func TestChangeOfAnotherManagerIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	other := &v1beta1.NodeImage{}
	w.check(w.Get(t.Context(), client.ObjectKey{Name: "a"}, other))
	tries := 0
	err := w.api.write(t.Context(), "a", func(object *v1beta1.NodeImage) bool {
		if tries++; tries == 1 {
			other.Spec.Images["other"] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "v1"}}}
			w.check(w.Update(t.Context(), other))
		}
		object.Spec.Images["ours"] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "v1"}}}
		return true
	})
	if images := w.nodeImage("a").Spec.Images; err != nil || tries != 2 || len(images) != 3 {
		t.Errorf("after %d tries %d images, %v", tries, len(images), err)
	}
}

func TestWritesOfTheManagerToANodeImageDoNotConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, node("a", nil), pullJob())
		w.look()
		server := &slowServer{Client: w.Client}
		w.api.client, w.api.Live = server, server
		var writers errgroup.Group
		for n := range 6 {
			writers.Go(func() error {
				return w.api.write(t.Context(), "a", func(object *v1beta1.NodeImage) bool {
					metav1.SetMetaDataLabel(&object.ObjectMeta, fmt.Sprintf("writer-%d", n), "was-here")
					return true
				})
			})
		}
		if err := writers.Wait(); err != nil || server.conflicts.Load() > 0 {
			t.Errorf("%d conflicts, %v", server.conflicts.Load(), err)
		}
		if labels := w.nodeImage("a").Labels; len(labels) != 6 {
			t.Errorf("labels %v", labels)
		}
	})
}

func TestJobStartsWhileTheDaemonWritesItsStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	second := pullJob(func(j *v1beta1.ImagePullJob) { j.Name, j.UID, j.Spec.Image = "second", "second", "game:v2" })
	w.check(w.Create(t.Context(), second))
	w.fallBehind("a")
	for range 2 { // the second time the cache has not seen the first
		if _, err := (&jobs{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(second)}); err != nil {
			t.Fatal(err)
		}
	}
	tags := w.nodeImage("a").Spec.Images["game"].Tags
	if len(tags) != 2 || len(tags[1].OwnerReferences) != 1 || image.Details(w.job("second").Status.Message) != "" {
		t.Errorf("%+v, message %q", tags, w.job("second").Status.Message)
	}
}
