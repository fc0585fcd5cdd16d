package control

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/revision"
)

// refusePulls has the API server answer that way when an ImagePullJob is created.
func (w *world) refusePulls(err error) {
	w.r.client = cached(interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*v1beta1.ImagePullJob); ok {
				return err
			}
			return c.Create(ctx, object, options...)
		},
	}))
}

// told reports whether an Event has these words.
func (w *world) told(words string) bool {
	for len(w.events) > 0 {
		if strings.Contains(<-w.events, words) {
			return true
		}
	}
	return false
}

// For example because of a quota, or of a rule of another webhook: the job will never exist.
func TestPodsAreUpdatedWhenTheImagePullJobIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.look()
	w.refusePulls(apierrors.NewForbidden(schema.GroupResource{Resource: "imagepulljobs"}, "logs", errors.New("exceeded quota")))
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("log:2")(s)
		s.UpdateStrategy.PrePullPolicy = v1beta1.PrePullAlways
	})
	w.rounds(5)
	if got := w.images(); got["log:2"] != 3 {
		t.Errorf("%v", got)
	}
	if !w.told("PrePullFailed create ImagePullJob") {
		t.Error("nobody is told")
	}
}

// resources gives the sidecar requests, in the SidecarSet and in the pods, which are of it.
func (w *world) resources(cpu string) {
	w.t.Helper()
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	w.change(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources.Requests = requests })
	set := w.set()
	for _, pod := range w.pods() {
		pod.Spec.Containers[1].Resources.Requests = requests
		version := &annotation.Version{SidecarSet: "logs", Hashes: revision.HashesOf(&set.Spec), Sidecars: []string{"log"}}
		pod.Annotations = annotation.Write(&corev1.Pod{}, version, metav1.NewTime(w.now))
		w.check(w.Update(w.t.Context(), &pod))
	}
	w.look()
}

func TestUpdatesThatWereBegunGoOnWhileNoImagePullJobCanBeCreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.resources("100m")
	w.change(func(s *v1beta1.SidecarSetSpec) {
		image("log:2")(s)
		s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	})
	w.look()
	if len(w.writes) != 1 || w.images()["log:1"] != 3 {
		t.Fatalf("writes to %v, images %v: one pod is to be resized", w.writes, w.images())
	}
	w.refusePulls(apierrors.NewInternalError(errors.New("failed calling webhook")))
	w.change(func(s *v1beta1.SidecarSetSpec) {
		s.UpdateStrategy.PrePullPolicy, s.UpdateStrategy.MaxUnavailable = v1beta1.PrePullAlways, new(intstr.FromInt32(2))
	})
	for range 2 {
		for _, s := range w.r.all() {
			w.check(w.r.observeAll(t.Context(), s))
		}
		_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "logs"}})
		if !apierrors.IsInternalError(err) {
			t.Fatalf("%v: the ImagePullJob is not tried again", err)
		}
	}
	if got := w.images(); got["log:2"] != 1 || len(w.writes) != 1 {
		t.Errorf("images %v, writes to %v: the pod that was begun is to get its image, and no other", got, w.writes)
	}
	if !w.told("PrePullFailed create ImagePullJob") {
		t.Error("nobody is told")
	}
}
