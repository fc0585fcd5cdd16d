package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// Thirty jobs that never complete are counted as before, while the NodeImage has the entries of a few of them only.
func TestJobsThatNeverCompleteLeaveRoomInANodeImage(t *testing.T) {
	t.Parallel()
	objects := []client.Object{node("a", nil)}
	var flood []*v1beta1.ImagePullJob
	for i := range 30 {
		flood = append(flood, pullJob(func(j *v1beta1.ImagePullJob) {
			j.Name, j.UID, j.Spec.Image = fmt.Sprint("j-", i), types.UID(fmt.Sprint("uid-", i)), fmt.Sprintf("flood-%d:v1", i)
			j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
		}))
		objects = append(objects, flood[i])
	}
	w := newWorld(t, objects...)
	w.look()
	before := w.nodeImage("a")
	metav1.SetMetaDataAnnotation(&before.ObjectMeta, "example.com/others", "x")
	w.check(w.Update(t.Context(), before))
	for round := range 5 {
		phase := v1beta1.ImagePhaseSucceeded
		if round == 0 {
			phase = v1beta1.ImagePhaseFailed
		}
		w.daemon("a", phase)
		w.look()
	}
	failed := 0
	for _, j := range flood {
		s := w.job(j.Name).Status
		failed += int(s.Failed)
		if s.Desired != 1 || s.Succeeded+s.Failed != 1 || s.Active != 0 {
			t.Errorf("%s: %+v", j.Name, s)
		}
	}
	after := w.nodeImage("a")
	if n := len(after.Spec.Images); n > 16 || n == 0 || failed == 0 {
		t.Errorf("%d images, %d jobs failed", n, failed)
	}
	if after.Annotations["example.com/others"] != "x" || strings.Count(after.Annotations[v1beta1.AnnotationEndedPulls], "\n") < 15 {
		t.Errorf("%v", after.Annotations)
	}
	for _, j := range flood {
		w.check(w.Delete(t.Context(), w.job(j.Name)))
	}
	w.look()
	after = w.nodeImage("a")
	if _, left := after.Annotations[v1beta1.AnnotationEndedPulls]; left || len(after.Spec.Images) != 0 || after.Annotations["example.com/others"] != "x" {
		t.Errorf("after the jobs: %d images, annotations %v", len(after.Spec.Images), after.Annotations)
	}
}

// A job of which the outcome is recorded has its NodeImages reconciled when it ends or is gone.
func TestNodesWithTheOutcomeOfAJobAreReconciledWhenItEnds(t *testing.T) {
	t.Parallel()
	job := pullJob(func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = &metav1.Time{Time: time.Unix(1e9, 0)} })
	recorded := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{v1beta1.AnnotationEndedPulls: "shop/j job Succeeded 1000000000 \n"}}}
	w := newWorld(t, job, recorded, &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
	if requests := w.api.nodesOfJob(t.Context(), job); len(requests) != 1 || requests[0].Name != "a" {
		t.Errorf("%v", requests)
	}
}

// The cache keeps all outcomes: without one a job would pull its image again.
func TestTheCacheKeepsTheOutcomesOfANodeImage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("shop/j job Succeeded 1000000000 \n", 4000)
	for kind, options := range ByObject() {
		object := kind.(*v1beta1.NodeImage)
		object.Annotations, object.ManagedFields = map[string]string{v1beta1.AnnotationEndedPulls: long}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
		kept, err := options.Transform(object)
		if err != nil {
			t.Fatal(err)
		}
		if is := kept.(*v1beta1.NodeImage); is.Annotations[v1beta1.AnnotationEndedPulls] != long || is.ManagedFields != nil {
			t.Errorf("%d bytes, managedFields %v", len(is.Annotations[v1beta1.AnnotationEndedPulls]), is.ManagedFields)
		}
	}
}
