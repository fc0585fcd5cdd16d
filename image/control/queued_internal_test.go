package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	faircontrol "github.com/refit-project/refit/internal/fair/control"
)

// The pulls of all namespaces wait for the writes of a NodeImage, so its size must not grow with the jobs of one of them.
// The other jobs of that namespace say what they wait for, and begin in the order of their creation.
func TestJobsOfANamespaceThatPullsMuchWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	const jobsOfMallory = 120
	objects := []client.Object{node("a", nil), pullJob()}
	for i := range jobsOfMallory {
		objects = append(objects, pullJob(func(j *v1beta1.ImagePullJob) {
			j.Namespace, j.Name, j.UID, j.Spec.Image = "mallory", fmt.Sprintf("j-%03d", i), types.UID(fmt.Sprint("m", i)), fmt.Sprintf("flood-%03d:v1", i)
			j.CreationTimestamp = metav1.NewTime(time.Date(2026, 11, 22, 9, 0, i, 0, time.UTC))
		}))
	}
	w := newWorld(t, objects...)
	w.reconcile((&nodeImages{w.api}).Reconcile, node("a", nil))
	reconcile := func() {
		for _, object := range append(objects[2:], objects[1]) {
			w.reconcile((&jobs{w.api}).Reconcile, object)
		}
	}
	reconcile()
	images := func() map[string]v1beta1.ImageSpec { return w.nodeImage("a").Spec.Images }
	atOnce := len(images()) - 1
	if atOnce < 8 || atOnce > 16 || images()["game"].Tags == nil {
		t.Fatalf("%d images of mallory", atOnce)
	}
	last := func() v1beta1.ImagePullJobStatus {
		var job v1beta1.ImagePullJob
		w.check(w.Get(t.Context(), client.ObjectKeyFromObject(objects[len(objects)-1]), &job))
		return job.Status
	}
	if s := last(); s.Active != 0 || !strings.HasSuffix(s.Message, "1 of 1 nodes wait for other pulls, for example NodeImage a has 24 KiB of pulls of namespace mallory that have not ended, which is the most there can be") {
		t.Errorf("%+v", s)
	}
	before := w.nodeImage("a")
	after := before.DeepCopy()
	states, ended, most := map[image.Target]image.State{}, 0, atOnce*2/3
	for _, want := range image.Wanted(after.Spec) {
		if want.Namespace == "mallory" && ended < most {
			ended++
			states[want.Target] = image.State{Phase: v1beta1.ImagePhaseFailed, Version: want.Version, Started: w.now, Completed: w.now}
		}
	}
	after.Status = image.Status(after.Spec, states)
	w.check(w.Status().Update(t.Context(), after))
	queue := faircontrol.Queue("", workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	w.api.jobsOfNode().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
	for queue.Len() > 0 {
		request, _ := queue.Get()
		queue.Done(request)
		w.reconcile((&jobs{w.api}).Reconcile, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}})
	}
	if next, last := fmt.Sprintf("flood-%03d", atOnce+most-1), fmt.Sprintf("flood-%03d", atOnce+most); images()[next].Tags == nil || images()[last].Tags != nil {
		t.Errorf("%d images after %d pulls have ended, %s is there: %t", len(images()), most, last, images()[last].Tags != nil)
	}
}
