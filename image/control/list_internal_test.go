package control

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/recorder"
)

func (w *world) jobsOfLists() []v1beta1.ImagePullJob {
	w.t.Helper()
	var list v1beta1.ImagePullJobList
	w.check(w.List(w.t.Context(), &list))
	return list.Items
}

func (w *world) events() *events.FakeRecorder { return w.api.Recorder.(*events.FakeRecorder) }

func pullList(images ...string) *v1beta1.ImageListPullJob {
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "l", UID: "list"}}
	list.Spec.Images = images
	return list
}

func TestListMakesAJobForEachImage(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1", "b:v1")
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(1))
	w := newWorld(t, node("n", nil), list)
	w.look()
	for _, job := range w.jobsOfLists() { // which go with the list
		if p := job.Spec.CompletionPolicy; p.TTLSecondsAfterFinished != nil || p.Type != v1beta1.CompletionAlways {
			t.Errorf("%s: %+v", job.Name, p)
		}
	}
	recorder.Want(t, w.events(), "Normal SuccessfulCreate Created ImagePullJob", "Normal SuccessfulCreate Created ImagePullJob")
	w.daemon("n", v1beta1.ImagePhaseSucceeded)
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if s := list.Status; s.Desired != 2 || s.Succeeded != 2 || !meta.IsStatusConditionTrue(s.Conditions, "Complete") {
		t.Errorf("%+v", s)
	}
}

func TestListThatNeverCompletesCountsImagesThatAllNodesHaveOrHaveFailed(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1")
	list.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
	w := newWorld(t, node("a", nil), node("b", nil), list)
	w.look()
	w.daemon("a", v1beta1.ImagePhaseSucceeded)
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if s := list.Status; s.Active != 1 || s.Completed != 0 {
		t.Errorf("while one node pulls: %+v", s)
	}
	w.daemon("b", v1beta1.ImagePhaseFailed)
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if s := list.Status; s.Active != 0 || s.Completed != 1 || s.Succeeded != 0 || len(s.FailedImageStatuses) != 1 || s.CompletionTime != nil || len(s.Conditions) > 0 {
		t.Errorf("when no node pulls: %+v", s)
	}
	w.check(w.Create(t.Context(), node("c", nil)))
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if s := list.Status; s.Active != 1 || s.Completed != 0 {
		t.Errorf("with a new node: %+v", s)
	}
}

func TestImagesOfAListComeAndGo(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1", "b:v1")
	list.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
	w := newWorld(t, node("n", nil), list)
	w.look()
	recorder.Want(t, w.events(), "Normal SuccessfulCreate", "Normal SuccessfulCreate")
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	list.Spec.Images = []string{"b:v1", "c:v1"}
	w.check(w.Update(t.Context(), list))
	w.look()
	recorder.Want(t, w.events(), "Normal SuccessfulDelete Deleted ImagePullJob", "Normal SuccessfulCreate Created ImagePullJob")
	var images []string
	for _, job := range w.jobsOfLists() {
		images = append(images, job.Spec.Image)
		if job.Spec.CompletionPolicy.Type != v1beta1.CompletionNever {
			t.Errorf("%s: policy %s", job.Name, job.Spec.CompletionPolicy.Type)
		}
	}
	if text := strings.Join(images, " "); text != "b:v1 c:v1" && text != "c:v1 b:v1" {
		t.Errorf("jobs for %s", text)
	}
}

// Jobs that have ended are made again too, until the list has.
func TestChangedTemplateOfAListReplacesItsJobs(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1", "b:v1")
	list.Spec.Parallelism = new(intstr.FromInt32(0))
	list.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
	w := newWorld(t, node("n", nil), list)
	w.look()
	recorder.Want(t, w.events(), "Normal SuccessfulCreate", "Normal SuccessfulCreate")
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	list.Spec.Parallelism = new(intstr.FromInt32(1))
	list.Spec.CompletionPolicy.Type = v1beta1.CompletionAlways
	w.check(w.Update(t.Context(), list))
	w.look()
	recorder.Want(t, w.events(), "Normal SuccessfulDelete", "Normal SuccessfulDelete", "Normal SuccessfulCreate", "Normal SuccessfulCreate")
	made := w.jobsOfLists()
	if len(made) != 2 {
		t.Fatalf("%d jobs", len(made))
	}
	for _, job := range made {
		if job.Spec.Parallelism.IntValue() != 1 || job.Spec.CompletionPolicy.Type != v1beta1.CompletionAlways || job.Status.Active != 1 {
			t.Errorf("%+v, %+v", job.Spec, job.Status)
		}
	}
	w.daemon("n", v1beta1.ImagePhaseSucceeded)
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	list.Spec.Parallelism = new(intstr.FromInt32(2))
	w.check(w.Update(t.Context(), list))
	if w.look(); len(w.events().Events) > 2 { // that the jobs have ended
		t.Errorf("%d Events after the end of the list", len(w.events().Events))
	}
}

// A job that is being deleted keeps its name until it is gone.
func TestJobOfAListIsReplacedWhenItIsGone(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1")
	w := newWorld(t, node("n", nil), list)
	w.look()
	job := w.jobsOfLists()[0]
	job.Finalizers = []string{"example.com/mine"}
	w.check(w.Update(t.Context(), &job))
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	list.Spec.Parallelism = new(intstr.FromInt32(5))
	w.check(w.Update(t.Context(), list))
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if made := w.jobsOfLists(); len(made) != 1 || made[0].UID != job.UID || list.Status.Message != "" {
		t.Fatalf("%d jobs, message %q", len(made), list.Status.Message)
	}
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(&job), &job))
	job.Finalizers = nil
	w.check(w.Update(t.Context(), &job))
	w.look()
	if made := w.jobsOfLists(); len(made) != 1 || made[0].Spec.Parallelism == nil || made[0].Spec.Parallelism.IntValue() != 5 {
		t.Errorf("%+v", made)
	}
}

// Jobs that OpenKruise or an earlier version has made are not made again by a change of the manager.
func TestJobsOfAListWithoutItsHashStay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta1.ImagePullJob){
		"of an earlier version": func(j *v1beta1.ImagePullJob) { j.Labels = nil },
		"of OpenKruise": func(j *v1beta1.ImagePullJob) {
			j.Labels = map[string]string{"controller-revision-hash": "theirs"}
			j.Spec.ImagePullPolicy, j.Spec.CompletionPolicy.TTLSecondsAfterFinished = v1beta1.PullIfNotPresent, new(int32(600))
		},
	} {
		list := pullList("a:v1")
		list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(600))
		w := newWorld(t, node("n", nil), list)
		w.look()
		job := w.jobsOfLists()[0]
		change(&job)
		w.check(w.Update(t.Context(), &job))
		recorder.Want(t, w.events(), "Normal SuccessfulCreate")
		if w.look(); len(w.events().Events) > 0 {
			t.Errorf("%s: %s", name, <-w.events().Events)
		}
	}
}

// Names are unique, valid, and tell by the list whose they are.
func TestJobsOfListsWithLongNamesAreCreated(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 199)
	var objects []client.Object
	for _, name := range []string{long + ".b", long + ".c"} {
		list := pullList("app:v1")
		list.Name, list.UID = name, types.UID(name[len(name)-1:])
		objects = append(objects, list)
	}
	w := newWorld(t, objects...)
	w.look()
	jobs := w.jobsOfLists()
	if len(jobs) != 2 {
		t.Fatalf("%d jobs", len(jobs))
	}
	for _, job := range jobs {
		if errs := validation.IsDNS1123Subdomain(job.Name); len(errs) > 0 {
			t.Errorf("%s: %v", job.Name, errs)
		}
	}
}

func TestListSaysWhyAJobIsNotCreated(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1", "b:v1")
	taken := pullJob(func(j *v1beta1.ImagePullJob) { j.Name = jobName(list, "a:v1") })
	w := newWorld(t, node("n", nil), list, taken)
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if s := list.Status; !strings.Contains(s.Message, "a:v1") || !strings.Contains(s.Message, "already exists") || s.Active != 1 {
		t.Errorf("%+v", s)
	}
	w.check(w.Delete(t.Context(), taken))
	w.look()
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if s := list.Status; s.Message != "" || s.Active != 2 {
		t.Errorf("%+v", s)
	}
}

// The cache has not shown it yet: that is no fault of the list.
func TestAJobOfAListThatTheCacheDoesNotHaveYetIsNotReported(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1")
	w := newWorld(t, node("n", nil), list)
	w.look()
	w.api.client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, ok := into.(*v1beta1.ImagePullJobList); ok {
				return nil
			}
			return c.List(ctx, into, options...)
		},
	})
	result, err := (&lists{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(list)})
	w.check(w.Get(t.Context(), client.ObjectKeyFromObject(list), list))
	if err != nil || result != (ctrl.Result{}) || list.Status.Message != "" {
		t.Errorf("%+v, %v, message %q", result, err, list.Status.Message)
	}
}

func TestAListIsTriedAgainAndRemovedInTime(t *testing.T) {
	t.Parallel()
	list := pullList("a:v1")
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60))
	taken := pullJob(func(j *v1beta1.ImagePullJob) { j.Name = jobName(list, "a:v1") })
	w := newWorld(t, node("n", nil), list, taken)
	look := func(want time.Duration) {
		t.Helper()
		result, err := (&lists{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(list)})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("%+v, %v, want another look after %s", result, err, want)
		}
	}
	look(startDelay) // the name of its job is taken
	w.check(w.Delete(t.Context(), taken))
	w.look()
	w.daemon("n", v1beta1.ImagePhaseSucceeded)
	w.look()
	look(time.Minute)
	w.now = w.now.Add(time.Minute)
	look(0)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(list), list); !apierrors.IsNotFound(err) {
		t.Errorf("the list is left after its time to live: %v", err)
	}
}
