package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
	"github.com/refit-project/refit/crr/queue"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// FuzzHostileRequests makes requests, their annotations and their pods of parts: each is admitted or refused, with a message of
// bounded length.
func FuzzHostileRequests(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1}, []byte{1})
		f.Add([]byte{1}, seed, []byte{1})
		f.Add([]byte{}, []byte{1}, seed)
	}
	f.Fuzz(func(t *testing.T, requestSeed, podSeed, annotationSeed []byte) {
		watchdog.Watch(t, func() {
			request, pod := crrtest.UserRequest("app"), crrtest.WebPod()
			var sent v1beta1.ContainerRecreateRequest
			if foreign.Object(hostile.JSON(&sent, requestSeed), &sent) == nil {
				request.Spec, request.Status = sent.Spec, sent.Status
			}
			var parts corev1.Pod
			if foreign.Object(hostile.JSON(&parts, podSeed), &parts) == nil {
				pod = &parts
			}
			names := string(hostile.JSON(map[string]string{}, annotationSeed))
			request.Annotations = map[string]string{
				v1beta1.AnnotationExpectedInstances: names, v1beta1.AnnotationInstances: names, v1beta1.AnnotationReason: names,
				v1beta1.AnnotationSyncContainerStatuses: string(hostile.JSON([]v1beta1.ContainerStatusSnapshot{}, annotationSeed)),
				v1beta1.AnnotationUnreadyAcquired:       names, v1beta1.AnnotationAdmittedAt: names,
			}
			if _, err := admission.Admit(request, observed(pod)); err != nil && len(err.Error()) > 8<<10 {
				t.Errorf("a refusal of %d bytes: %.300s", len(err.Error()), err)
			}
			record.Apply(request)
			record.Begun(request)
			v1beta1.ReadHandOff(request)
			queue.Order([]*v1beta1.ContainerRecreateRequest{request, request})
		})
	})
}
