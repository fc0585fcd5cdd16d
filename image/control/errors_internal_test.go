package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/internal/cache"
)

var errDown = errors.New("the API server is down")

// without is an API server that does not answer one kind of call, such as "list *v1beta1.NodeImageList". It counts them.
func (w *world) without(call string) (*api, *int) {
	n := 0
	answer := func(verb string, object any) error {
		if fmt.Sprintf("%s %T", verb, object) != call {
			return nil
		}
		n++
		return errDown
	}
	down := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			return errors.Join(answer("get", o), c.Get(ctx, key, o, options...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := answer("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := answer("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, o client.Object, options ...client.SubResourceUpdateOption) error {
			if err := answer(subresource, o); err != nil {
				return err
			}
			return c.SubResource(subresource).Update(ctx, o, options...)
		},
	})
	config := w.api.Config
	config.Nodes, config.Live, config.Recorder = cache.NewNodes(down, down), down, events.NewFakeRecorder(1000)
	return newAPI(config, down), &n
}

// Otherwise nothing of it would be tried again, or a NodeImage would be removed whose node is there.
func TestWhatCannotBeReadOrWrittenIsTriedAgain(t *testing.T) {
	t.Parallel()
	jobs := func(a *api) (ctrl.Result, error) {
		return (&jobs{a}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "j"}})
	}
	lists := func(a *api) (ctrl.Result, error) {
		return (&lists{a}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "l"}})
	}
	nodes := func(a *api) (ctrl.Result, error) {
		return (&nodeImages{a}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	}
	unreadable := func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "no value!"}}}
	}
	for _, tt := range []struct {
		call   string
		look   func(*api) (ctrl.Result, error)
		change func(*v1beta1.ImagePullJob)
	}{
		{"get *v1beta1.ImagePullJob", jobs, nil},
		{"list *v1beta1.NodeImageList", jobs, nil},
		{"status *v1beta1.ImagePullJob", jobs, nil},
		{"status *v1beta1.ImagePullJob", jobs, unreadable},
		{"get *v1beta1.ImageListPullJob", lists, nil},
		{"list *v1beta1.ImagePullJobList", lists, nil},
		{"status *v1beta1.ImageListPullJob", lists, nil},
		{"get *v1.PartialObjectMetadata", nodes, nil},
		{"get *v1beta1.NodeImage", nodes, nil},
	} {
		list := pullList("b:v1")
		list.Namespace, list.Name = "shop", "l"
		job := pullJob()
		if tt.change != nil {
			tt.change(job)
		}
		w := newWorld(t, node("a", nil), list, job)
		w.reconcile((&nodeImages{w.api}).Reconcile, node("a", nil))
		a, n := w.without(tt.call)
		if _, err := tt.look(a); !errors.Is(err, errDown) || *n == 0 {
			t.Errorf("%s: %v after %d calls", tt.call, err, *n)
		}
		for events := a.Recorder.(*events.FakeRecorder).Events; len(events) > 0; {
			if told := <-events; strings.Contains(told, "Completed") || strings.Contains(told, "Failed") {
				t.Errorf("%s: told %q", tt.call, told)
			}
		}
		w.nodeImage("a") // is still there
		if _, err := tt.look(w.api); err != nil {
			t.Errorf("%s: afterwards %v", tt.call, err)
		}
	}
}

// Jobs of which it is not known whether they are gone keep their pulls.
func TestPullsStayWhileJobsCannotBeListed(t *testing.T) {
	t.Parallel()
	object := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}}
	for i := range manyGone {
		entry.Request(object, pullJob(func(j *v1beta1.ImagePullJob) { j.Name, j.UID = fmt.Sprint(i), types.UID(fmt.Sprint(i)) }), nil, time.Now())
	}
	w := newWorld(t, node("a", nil), object)
	a, n := w.without("list *v1.PartialObjectMetadataList")
	_, err := (&nodeImages{a}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}})
	if !errors.Is(err, errDown) || *n != 1 || len(w.nodeImage("a").Spec.Images) != 1 {
		t.Errorf("%v after %d calls, %v", err, *n, w.nodeImage("a").Spec.Images)
	}
	if w.look(); len(w.nodeImage("a").Spec.Images) != 0 {
		t.Errorf("%v are left of jobs that are gone", w.nodeImage("a").Spec.Images)
	}
}

func TestAListThatIsDeletedMakesNoJobs(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1")
	list.Finalizers = []string{"example.org/keep"}
	w := newWorld(t, node("a", nil), list)
	w.check(w.Delete(t.Context(), list))
	if w.look(); len(w.jobsOfLists()) != 0 {
		t.Errorf("%d jobs", len(w.jobsOfLists()))
	}
}

// Its jobs are those that it has had: nothing is pulled again for a list that is over.
func TestAListThatHasEndedKeepsItsJobs(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1")
	w := newWorld(t, node("a", nil), list)
	w.look()
	w.daemon("a", v1beta1.ImagePhaseSucceeded)
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if list.Status.CompletionTime == nil || list.Status.Succeeded != 1 {
		t.Fatalf("%+v", list.Status)
	}
	list.Spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(9))}
	w.check(w.Update(t.Context(), list))
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if list.Status.CompletionTime == nil || list.Status.Succeeded != 1 || len(w.jobsOfLists()) != 1 {
		t.Errorf("%+v, %d jobs", list.Status, len(w.jobsOfLists()))
	}
}

// A namespace with a quota: the API server is not asked for each of hundreds of images.
func TestAListIsGivenUpForAWhileAfterSomeRefusals(t *testing.T) {
	t.Parallel()
	var images []string
	for i := range 2 * maxErrors {
		images = append(images, fmt.Sprintf("a%d:v1", i))
	}
	list := pullList(images...)
	w := newWorld(t, list)
	a, n := w.without("create *v1beta1.ImagePullJob")
	result, err := (&lists{a}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(list)})
	if err != nil || *n != maxErrors || result.RequeueAfter != startDelay {
		t.Errorf("%d calls, %+v, %v", *n, result, err)
	}
}

func TestAnEntryForANewNodeIsNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil))
	for range 2 {
		if _, err := (&nodeImages{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})}); err != nil {
			t.Error(err)
		}
	}
}
