package crr_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// What a request has stopped is counted as requested, whoever writes its status: OpenKruise's CRD keeps no container IDs in it.
func TestStoppedInstance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		phase   v1beta1.ContainerRecreateRequestPhase
		id      string
		context *v1beta1.ContainerRecreateRequestContainerContext
		want    string
	}{
		"not yet":             {v1beta1.ContainerRecreateRequestPending, "c://1", nil, ""},
		"in the status":       {v1beta1.ContainerRecreateRequestRecreating, "c://1", &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://0"}, "c://1"},
		"at the admission":    {v1beta1.ContainerRecreateRequestRecreating, "", &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://0"}, "c://0"},
		"nothing is recorded": {v1beta1.ContainerRecreateRequestSucceeded, "", nil, ""},
		"failed in its drain": {v1beta1.ContainerRecreateRequestFailed, "", &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://0"}, ""},
		"failed later":        {v1beta1.ContainerRecreateRequestFailed, "c://1", nil, "c://1"},
		"no state":            {"", "c://1", nil, ""},
	} {
		request := &v1beta1.ContainerRecreateRequest{}
		request.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue}}
		request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "other"}, {Name: "app", StatusContext: tt.context}}
		if tt.phase != "" {
			request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: tt.phase, ContainerID: tt.id}}
		}
		if got := crr.Stopped(request, "app"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
