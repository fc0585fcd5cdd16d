package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/stalecache"
)

// Images are pulled only on nodes that have pods which are to be updated, and only by a manager that reconciles ImagePullJobs.
func TestImagesArePulledWherePodsAre(t *testing.T) {
	t.Parallel()
	prePull := func(s *v1beta1.SidecarSetSpec) {
		image("log:2")(s)
		s.UpdateStrategy.PrePullPolicy = v1beta1.PrePullAlways
	}
	w := newWorld(t, 4)
	for name, node := range map[string]string{"web-0": "c", "web-1": "", "web-2": "b"} {
		pod := w.pod(name)
		pod.Spec.NodeName = node
		w.check(w.Update(t.Context(), pod))
	}
	w.look()
	w.change(prePull)
	again := w.reconcile()
	var jobs v1beta1.ImagePullJobList
	w.check(w.List(t.Context(), &jobs))
	if len(jobs.Items) != 1 || strings.Join(jobs.Items[0].Spec.Selector.Names, " ") != "a b c" || again == 0 || again > 10*time.Second {
		t.Fatalf("looks again in %s, %+v", again, jobs.Items)
	}
	jobs.Items[0].Status.CompletionTime = &metav1.Time{Time: w.now}
	w.check(w.Update(t.Context(), &jobs.Items[0]))
	w.rounds(1)
	w.check(w.Delete(t.Context(), &jobs.Items[0])) // its time to live is over
	w.rounds(8)
	w.check(w.List(t.Context(), &jobs))
	if got := w.images(); got["log:2"] != 4 || len(jobs.Items) != 0 {
		t.Errorf("%v, %d further jobs", got, len(jobs.Items))
	}
	w = newWorld(t, 1)
	w.r.PrePull = false
	w.look()
	w.change(prePull)
	w.rounds(1)
	if got := w.images(); got["log:2"] != 1 {
		t.Errorf("%v without ImagePullJobs", got)
	}
}

// Without the right to create ImagePullJobs the update does not go on without them: the error says what is missing.
func TestImagesThatCannotBePulledHoldUpTheUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*v1beta1.ImagePullJob); ok {
				return errors.New("forbidden")
			}
			return c.Create(ctx, object, options...)
		},
	})
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("log:2")(s)
		s.UpdateStrategy.PrePullPolicy = v1beta1.PrePullAlways
	})
	if _, err := w.r.Reconcile(t.Context(), request("logs")); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("error %v", err)
	}
	if got := w.images(); got["log:2"] != 0 {
		t.Errorf("%v", got)
	}
}

// A pod can be rolled back to the version that it has, however many have come since.
func TestRevisionOfAPodIsKeptBeyondTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.change(func(s *v1beta1.SidecarSetSpec) { s.RevisionHistoryLimit = new(int32(1)) })
	w.look()
	w.change(image("log:2"))
	w.rounds(4)
	names := func() (names []string) {
		var revisions appsv1.ControllerRevisionList
		w.check(w.List(t.Context(), &revisions))
		for i := range revisions.Items {
			names = append(names, revisions.Items[i].Name)
		}
		return names
	}
	used := w.set().Status.LatestRevision
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("log:3")(s)
		s.UpdateStrategy.Paused = true
	})
	w.rounds(1)
	unused := w.set().Status.LatestRevision
	w.change(image("log:4"))
	w.rounds(1)
	w.change(image("log:5"))
	w.rounds(1)
	if got := names(); !slices.Contains(got, used) || slices.Contains(got, unused) || !slices.Contains(got, w.set().Status.LatestRevision) {
		t.Errorf("revisions %q: want %s, which pods have, and the newest, not %s", got, used, unused)
	}
}

func TestRevisionThatWasCreatedAgainIsNotDeletedFromTheCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.RevisionHistoryLimit = new(int32(1))
		s.UpdateStrategy.Paused = true
	})
	w.look()
	w.change(image("log:2"))
	w.rounds(1)
	stale := &appsv1.ControllerRevision{}
	key := client.ObjectKey{Namespace: "refit-system", Name: w.set().Status.LatestRevision}
	w.check(w.Get(t.Context(), key, stale))
	again := stale.DeepCopy()
	again.UID = "another"
	w.check(w.Update(t.Context(), again))
	behind := w.r.client
	w.r.client = stalecache.Client{Client: behind, Object: stale}
	for _, newer := range []string{"log:3", "log:4"} {
		w.change(image(newer))
		_, _ = w.r.Reconcile(t.Context(), request("logs"))
	}
	w.check(w.Get(t.Context(), key, stale))
	w.r.client = behind
	w.rounds(1)
	if err := w.Get(t.Context(), key, stale); !apierrors.IsNotFound(err) {
		t.Errorf("%v: it is kept although nothing is of it", err)
	}
}

// v1alpha1 of OpenKruise names a version by a label, which is no change of the spec.
func TestLabelNamesAVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	set := w.set()
	set.Labels = map[string]string{v1beta1.LabelSidecarSetCustomVersion: "v7"}
	w.check(w.Update(t.Context(), set))
	w.reconcile()
	var revisions appsv1.ControllerRevisionList
	w.check(w.List(t.Context(), &revisions))
	if len(revisions.Items) != 1 || revisions.Items[0].Labels[v1beta1.LabelSidecarSetCustomVersion] != "v7" {
		t.Errorf("%+v", revisions.Items)
	}
}

// A SidecarSet that is deleted and created again between two looks has the same generation.
func TestSidecarSetThatIsCreatedAgainIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.look()
	set := w.set()
	w.check(w.Delete(t.Context(), set))
	again := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "again", Generation: set.Generation}, Spec: set.Spec}
	again.Spec.Containers[0].Image = "log:2"
	w.check(w.Create(t.Context(), again))
	w.rounds(4)
	if got := w.images(); got["log:2"] != 2 {
		t.Errorf("%v", got)
	}
}

// The spec changes again before the cache has our own write: the pod that was written is out of service.
func TestASpecThatChangesWhileTheCacheIsBehindOurWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	before := map[string]*corev1.Pod{}
	for _, pod := range w.pods() {
		before[pod.Name] = &pod
	}
	w.change(image("log:2"))
	w.reconcile()
	w.r.client = stalecache.Client{Client: w.r.client, Object: trimmer.Of(before[w.updatedPod().Name])}
	w.r.lastPodEvent.Store(w.now.UnixNano()) // of another pod: the pods are not read from the API server
	w.change(image("log:3"))
	w.reconcile()
	if got := w.images(); got["log:1"] != 2 {
		t.Errorf("%v: another pod is out of service", got)
	}
}
