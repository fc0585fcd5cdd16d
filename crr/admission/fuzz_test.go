package admission_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
)

// FuzzAdmit: whatever is sent, nothing panics, the answer is the same when asked again, and a request that was
// admitted is valid, is admitted alike when its read-only fields are taken out, and is refused while they are in.
func FuzzAdmit(f *testing.F) {
	request, _ := json.Marshal(crrtest.UserRequest("app", "mesh"))
	pod, _ := json.Marshal(crrtest.WebPod())
	f.Add(request, pod)
	hooked := crrtest.WebPod()
	preStop(corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}})(hooked)
	pod, _ = json.Marshal(hooked)
	f.Add(request, pod)
	f.Add([]byte(`{"spec":{"podName":"web","containers":[{"name":"\xff"}]}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, requestJSON, podJSON []byte) {
		var request v1beta1.ContainerRecreateRequest
		var pod corev1.Pod
		if json.Unmarshal(requestJSON, &request) != nil || json.Unmarshal(podJSON, &pod) != nil {
			return
		}
		got, err := admission.Admit(&request, observed(&pod))
		if again, errAgain := admission.Admit(&request, observed(&pod)); !cmp.Equal(got, again) || !cmp.Equal(err, errAgain) {
			t.Fatalf("two answers: %v, %v", err, errAgain)
		}
		if err != nil {
			return
		}
		if err := admission.CheckRequest(got); err != nil {
			t.Errorf("admitted, but: %v", err)
		}
		if again, err := admission.Admit(got, observed(&pod)); err != nil || !cmp.Equal(again, got) {
			t.Errorf("after another webhook that fills in the same: %+v, %v", again, err)
		}
		delete(got.Labels, v1beta1.LabelActive)
		_, err = admission.Admit(got, observed(&pod))
		refused(t, err, http.StatusBadRequest, firstReadOnly(got))
		for i := range got.Spec.Containers {
			got.Spec.Containers[i] = v1beta1.ContainerRecreateRequestContainer{Name: got.Spec.Containers[i].Name}
		}
		if _, err := admission.Admit(got, observed(&pod)); err != nil {
			t.Errorf("without its read-only fields: %v", err)
		}
	})
}

func firstReadOnly(r *v1beta1.ContainerRecreateRequest) string {
	switch first := r.Spec.Containers[0]; {
	case first.PreStop != nil:
		return "spec.containers[0].preStop"
	case len(first.Ports) > 0:
		return "spec.containers[0].ports"
	default:
		return "spec.containers[0].statusContext"
	}
}
