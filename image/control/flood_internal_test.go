package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/control/secretcopy"
	"github.com/refit-project/refit/image/entry"
)

// calls counts what the API server is asked and sent.
type calls struct {
	client.Client
	gets, lists, writes int
}

func (c *calls) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	c.gets++
	return c.Client.Get(ctx, key, into, options...)
}

func (c *calls) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	c.lists++
	return c.Client.List(ctx, into, options...)
}

func (c *calls) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.writes++
	return c.Client.Patch(ctx, object, patch, options...)
}

// flooded is a node with a thousand jobs of one tenant and one of another.
func flooded(t *testing.T) (w *world, flood []*v1beta1.ImagePullJob) {
	t.Helper()
	full := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}}
	objects := []client.Object{node("a", nil)}
	for i := range 1000 {
		flood = append(flood, pullJob(func(j *v1beta1.ImagePullJob) {
			j.Namespace, j.Name, j.UID, j.Spec.Image = "mallory", fmt.Sprint("j-", i), types.UID(fmt.Sprint("flood-", i)), fmt.Sprint("flood:v", i%10)
		}))
	}
	for _, job := range append(flood, pullJob()) {
		objects = append(objects, job)
		if !entry.Request(full, job, nil, metav1.Now().Time) {
			t.Fatal("no room")
		}
	}
	return newWorld(t, append(objects, full)...), flood
}

// A thousand jobs that are deleted are gone from a NodeImage after a few requests, not after one for each, and so are the copies of
// pull secrets: each took a minute or more on a busy API server, while none of their pulls ended.
func TestAThousandDeletedJobsTakeFewRequests(t *testing.T) {
	t.Parallel()
	w, flood := flooded(t)
	for _, job := range flood {
		w.check(w.Delete(t.Context(), job.DeepCopy()))
	}
	server := &calls{Client: w.Client}
	w.api.Live = server
	w.api.client = writes{Client: w.Client, to: server}
	w.api.copies = secretcopy.New(w.api.client, server, secretNamespace)
	w.reconcile((&nodeImages{w.api}).Reconcile, node("a", nil))
	for _, job := range flood {
		w.reconcile((&jobs{w.api}).Reconcile, job)
	}
	w.removeCopies()
	if server.gets > 1 || server.lists > 3 || server.writes != 1 {
		t.Errorf("%d reads, %d lists and %d writes", server.gets, server.lists, server.writes)
	}
	if images := w.nodeImage("a").Spec.Images; len(images) != 1 || len(images["game"].Tags[0].OwnerReferences) != 1 {
		t.Errorf("left: %d images", len(images))
	}
}

// writes reads from its Client, as from a cache, and writes to another.
type writes struct {
	client.Client
	to client.Client
}

func (w writes) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return w.to.Patch(ctx, object, patch, options...)
}

// A job that is still there is not taken for one that is gone with a thousand others, although the cache does not have it yet.
func TestAJobThatTheCacheDoesNotHaveYetIsNotGoneWithAThousandOthers(t *testing.T) {
	t.Parallel()
	w, flood := flooded(t)
	for _, job := range flood[1:] {
		w.check(w.Delete(t.Context(), job.DeepCopy()))
	}
	server := &calls{Client: w.Client}
	w.api.Live = server
	w.api.client = newlyStarted{w.Client}
	w.reconcile((&nodeImages{w.api}).Reconcile, node("a", nil))
	if images := w.nodeImage("a").Spec.Images; len(images) != 2 || len(images["flood"].Tags) != 1 || images["flood"].Tags[0].OwnerReferences[0].Name != "j-0" {
		t.Errorf("left: %+v", images)
	}
	if server.gets > 3 || server.lists > 2 {
		t.Errorf("%d reads and %d lists", server.gets, server.lists)
	}
}

// newlyStarted has no job in its cache.
type newlyStarted struct{ client.Client }

func (c newlyStarted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, ok := into.(*v1beta1.ImagePullJob); ok {
		key.Name = "no-such-job"
	}
	return c.Client.Get(ctx, key, into, options...)
}

// One of a thousand pulls says that it has begun: its job is looked at, and no other. When it is taken away, all are, as there may be
// room for them.
func TestAReportOfOnePullIsLookedAtByItsJobAlone(t *testing.T) {
	t.Parallel()
	w, _ := flooded(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	watch := w.api.jobsOfNode()
	before := w.nodeImage("a")
	w.daemon("a", v1beta1.ImagePhaseWaiting)
	quiet := w.nodeImage("a")
	busy := quiet.DeepCopy()
	tag := &busy.Status.ImageStatuses["game"].Tags[0]
	tag.Phase, tag.Namespaces[0].Phase = v1beta1.ImagePhasePulling, v1beta1.ImagePhasePulling
	lost := busy.DeepCopy()
	delete(lost.Spec.Images, "game")
	for _, step := range []struct {
		what          string
		before, after *v1beta1.NodeImage
		want          int
	}{
		{"all pulls report", before, quiet, 1001}, {"nothing has changed", quiet, quiet, 0}, {"one reports", quiet, busy, 1}, {"one is gone", busy, lost, 1001},
	} {
		watch.Update(t.Context(), event.UpdateEvent{ObjectOld: step.before, ObjectNew: step.after}, queue)
		if n := queue.Len(); n != step.want {
			t.Errorf("%s: %d jobs are looked at, want %d", step.what, n, step.want)
		}
		for queue.Len() > 0 {
			request, _ := queue.Get()
			queue.Forget(request)
			queue.Done(request)
		}
	}
	watch.Create(t.Context(), event.CreateEvent{Object: quiet}, queue)
	if n := queue.Len(); n != 1001 {
		t.Errorf("%d jobs look at another node", n)
	}
}

// Copies are looked at once for all jobs that have ended or are gone, not for those that go on.
func TestCopiesAreLookedAtOnceForManyJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watch := w.api.copiesOfJob()
	queue := &delayed{TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())}
	defer queue.ShutDown()
	watch.Create(t.Context(), event.CreateEvent{Object: pullJob()}, queue)
	watch.Update(t.Context(), event.UpdateEvent{ObjectOld: pullJob(), ObjectNew: pullJob()}, queue)
	if len(queue.added) > 0 {
		t.Errorf("looked at for a job that goes on: %v", queue.added)
	}
	watch.Create(t.Context(), event.CreateEvent{Object: pullJob(ended)}, queue)
	watch.Update(t.Context(), event.UpdateEvent{ObjectOld: pullJob(), ObjectNew: pullJob(ended)}, queue)
	watch.Update(t.Context(), event.UpdateEvent{ObjectOld: pullJob(), ObjectNew: pullJob(func(j *v1beta1.ImagePullJob) { j.DeletionTimestamp = new(metav1.Now()) })}, queue)
	watch.Delete(t.Context(), event.DeleteEvent{Object: pullJob()}, queue)
	for _, request := range queue.added {
		if request != queue.added[0] || request.Name != secretNamespace {
			t.Errorf("%v", queue.added)
		}
	}
	if len(queue.added) != 4 {
		t.Errorf("%d times", len(queue.added))
	}
}

// delayed records what is added after a second.
type delayed struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	added []ctrl.Request
}

func (d *delayed) AddAfter(request ctrl.Request, after time.Duration) {
	if after == time.Second {
		d.added = append(d.added, request)
	}
}

// A selector that nobody can read is said on its job, and the job not tried again and again.
func TestASelectorThatCannotBeReadIsSaidOnTheJob(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta1.ImagePullJob){
		"of nodes": func(j *v1beta1.ImagePullJob) {
			j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "no value!"}}}
		},
		"of pods": func(j *v1beta1.ImagePullJob) {
			j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{
				MatchExpressions: make([]metav1.LabelSelectorRequirement, 1000),
			}}
		},
	} {
		w := newWorld(t, node("a", nil), pullJob(change))
		w.look()
		result, err := (&jobs{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pullJob())})
		if err != nil || result != (ctrl.Result{}) {
			t.Errorf("%s: tried again, %+v, %v", name, result, err)
		}
		if said := w.job("j").Status.Message; len(said) == 0 || len(w.nodeImage("a").Spec.Images) > 0 {
			t.Errorf("%s: message %q", name, said)
		}
	}
}

// The API server cannot be reached for a while: jobs are tried again soon after it can be, in a namespace with one job
// as soon as in a namespace with a thousand.
func TestWhatHasFailedIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	limiter := (&Config{}).options().RateLimiter
	request := func(namespace string, n int) ctrl.Request {
		return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: fmt.Sprint(n)}}
	}
	for n := range 1000 {
		for range 20 {
			if after := limiter.When(request("mallory", n)); after > 30*time.Second {
				t.Fatalf("after %s", after)
			}
		}
	}
	if after := limiter.When(request("shop", 0)); after > 100*time.Millisecond {
		t.Errorf("the first failure of another is tried again after %s", after)
	}
}
