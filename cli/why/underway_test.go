package why_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/why"
)

// stopping is a request under way that has recorded the instance that it stops: its status says no more than that until
// 10 s after the end of the stop.
func stopping(id string) v1beta1.ContainerRecreateRequest {
	r := request("now")
	r.CreationTimestamp = at(-1)
	r.Status.CompletionTime, r.Status.Phase = nil, v1beta1.ContainerRecreateRequestRecreating
	r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{
		{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: id, RestartCount: 1}},
	}
	r.Status.ContainerRecreateStates[0] = v1beta1.ContainerRecreateRequestRecreateState{
		Name: "app", Phase: v1beta1.ContainerRecreateRequestPending, Message: "stopping", ContainerID: id,
	}
	return r
}

// pruned is the same request under OpenKruise's CRD.
func pruned(r v1beta1.ContainerRecreateRequest) v1beta1.ContainerRecreateRequest {
	r.Annotations[v1beta1.AnnotationInstances] = `{"app":"` + r.Status.ContainerRecreateStates[0].ContainerID + `"}`
	r.Status.ContainerRecreateStates[0].ContainerID = ""
	return r
}

func TestARequestWhoseStatusDoesNotShowTheEndOfTheStopIsTheCause(t *testing.T) {
	t.Parallel()
	const earlier, stopped, running = "containerd://app1", "containerd://app2", "containerd://app3"
	terminated := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id, FinishedAt: at(-1)}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(0)}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	for name, tt := range map[string]struct {
		id           string
		state, last  corev1.ContainerState
		restarts     int32
		words        string
		notRequested bool
	}{
		"it has ended": {stopped, terminated(stopped), terminated(earlier), 1, "stopped by ContainerRecreateRequest now ", false},
		"it has ended, and the next is being created": {stopped, waits, terminated(stopped), 1, "stopped by ContainerRecreateRequest now ", false},
		"the next runs": {running, runs, terminated(stopped), 2, "restarted by ContainerRecreateRequest now ", false},
		"the next runs, the stopped one was removed": {running, runs, terminated(earlier), 2, "restarted by ContainerRecreateRequest now ", false},
		"it still runs": {stopped, runs, terminated(earlier), 1, "the previous instance ", true},
	} {
		p := pod()
		p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", ContainerID: tt.id, State: tt.state, LastTerminationState: tt.last, RestartCount: tt.restarts}
		for crd, r := range map[string]v1beta1.ContainerRecreateRequest{"Refit": stopping(stopped), "OpenKruise": pruned(stopping(stopped))} {
			got := why.Explain(p, []v1beta1.ContainerRecreateRequest{r}, []string{"app"})[0]
			if (got.Cause != why.CauseRequest) != tt.notRequested || !strings.Contains(got.Message, tt.words) {
				t.Errorf("%s, CRD of %s: %+v", name, crd, got)
			}
		}
	}
}
