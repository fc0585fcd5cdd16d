package admission_test

import (
	"testing"

	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
)

// What is refused is in TestAdmitRefuses.
func TestAdmitTakesTheInstanceThatIsExpected(t *testing.T) {
	t.Parallel()
	request := crrtest.UserRequest("app")
	annotate("refit.dev/expected-instances", `{"app":"containerd://app1"}`)(request)
	got, err := admission.Admit(request, observed(crrtest.WebPod()))
	if err != nil {
		t.Fatal(err)
	}
	if id := got.Spec.Containers[0].StatusContext.ContainerID; id != "containerd://app1" {
		t.Errorf("instance %s", id)
	}
}
