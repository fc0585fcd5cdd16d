package images

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/testkit/recorder"
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
