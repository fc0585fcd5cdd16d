package why_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/why"
)

func recorded(p *corev1.Pod, text string) {
	p.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: text}
}

// The record of a second update does not have the containers of the first.
func TestSecondUpdateDoesNotMakeTheFirstAnExit(t *testing.T) {
	t.Parallel()
	p := pod()
	recorded(p, `{"revision":"x","updateTimestamp":"2026-11-22T12:05:00Z","lastContainerStatuses":{"log":{"imageID":"old"}}}`)
	got := why.Explain(p, nil, []string{"app"})[0]
	if got.Cause != why.CauseUnknown || !strings.Contains(got.Message, "an earlier in-place update may have replaced the previous instance") || !strings.Contains(got.Message, "2026-11-22T12:05:00Z") {
		t.Errorf("%+v", got)
	}
	containers := []why.Container{got}
	why.AddEvents(containers, p, []corev1.Event{event("k", "Killing", "app", "Container app definition changed, will be restarted", 1, -1)})
	if containers[0].Cause != why.CauseUpdate || containers[0].Message != "replaced by an in-place update of the pod" {
		t.Errorf("with the Event of kubelet: %+v", containers[0])
	}
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated.FinishedAt = at(600)
	if got := why.Explain(p, nil, []string{"app"})[0]; got.Cause != why.CauseExit {
		t.Errorf("ended after the update: %+v", got)
	}
	p = pod()
	recorded(p, `{"revision":"x","updateTimestamp":"2026-11-22T12:05:00Z","lastContainerStatuses":{"log":{"imageID":"old"}}}`)
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated.Reason = "OOMKilled"
	if got := why.Explain(p, nil, []string{"app"})[0]; got.Cause != why.CauseExit {
		t.Errorf("memory limit: %+v", got)
	}
}

// The record names the instance that was replaced: another one that has ended is one of the new image.
func TestCrashAfterAnUpdateIsNoUpdate(t *testing.T) {
	t.Parallel()
	p := pod()
	p.Status.ContainerStatuses[0].ImageID = "new"
	const text = `{"revision":"x","updateTimestamp":"2026-11-22T11:00:00Z","lastContainerStatuses":{"app":{"imageID":"old"}},"refit":{"instances":{"app":{"containerID":"containerd://ID"}}}}`
	for id, want := range map[string]why.Cause{"app0": why.CauseExit, "app1": why.CauseUpdate} {
		recorded(p, strings.Replace(text, "containerd://ID", "containerd://"+id, 1))
		if got := why.Explain(p, nil, []string{"app"})[0]; got.Cause != want {
			t.Errorf("record of %s: %+v", id, got)
		}
	}
}

// A sidecar that was stopped for a new image, which cannot be pulled.
func TestContainerThatWasStoppedForANewImageIsUpdated(t *testing.T) {
	t.Parallel()
	p := pod()
	status := &p.Status.ContainerStatuses[1]
	*status = corev1.ContainerStatus{
		Name: "log", ContainerID: "containerd://log1", ImageID: "old", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://log1", FinishedAt: at(-1)}},
	}
	recorded(p, `{"revision":"x","updateTimestamp":"2026-11-22T11:59:58Z","lastContainerStatuses":{"log":{"imageID":"old"}}}`)
	if got := why.Explain(p, nil, []string{"log"})[0]; got.Cause != why.CauseUpdate || !strings.Contains(got.Message, "stopped by an in-place update of the pod; kubelet has not started the new instance yet") {
		t.Errorf("%+v", got)
	}
	p.Annotations = nil
	if got := why.Explain(p, nil, []string{"log"})[0]; got.Cause == why.CauseNone {
		t.Errorf("without the record: %+v", got)
	}
}

// As under the gate of docs/restarts.md: the request has stopped the instance, and kubelet may not start the next.
func TestContainerThatARequestUnderWayHasStoppedNamesIt(t *testing.T) {
	t.Parallel()
	ended := &corev1.ContainerStateTerminated{ContainerID: "containerd://app1", FinishedAt: at(-1)}
	for name, status := range map[string]corev1.ContainerStatus{
		"ended":                                 {Name: "app", ContainerID: "containerd://app1", State: corev1.ContainerState{Terminated: ended}},
		"waiting":                               {Name: "app", ContainerID: "containerd://app1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}, LastTerminationState: corev1.ContainerState{Terminated: ended}},
		"waiting, and the instance was removed": {Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}},
	} {
		p, r := pod(), request("gated")
		p.Status.ContainerStatuses[0] = status
		r.Status.CompletionTime, r.Status.ContainerRecreateStates[0].Phase = nil, v1beta1.ContainerRecreateRequestRecreating
		got := why.Explain(p, []v1beta1.ContainerRecreateRequest{r}, []string{"app"})[0]
		if got.Cause != why.CauseRequest || got.Request != "gated" || got.RequestedBy != "alice" || !strings.Contains(got.Message, "stopped by ContainerRecreateRequest gated ") ||
			!strings.Contains(got.Message, "kubelet has not started it again yet") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A request cannot start a container whose image does not exist.
func TestBackoffBeforeAnotherImageDoesNotPromiseAStart(t *testing.T) {
	t.Parallel()
	p := pod()
	status := &p.Status.ContainerStatuses[0]
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container=app"}}
	status.Image, p.Spec.Containers[0].Image = "docker.io/library/nginx:1.25", "nginx:1.25"
	if got := why.Explain(p, nil, []string{"app"})[0]; !strings.HasSuffix(got.Waiting, "a ContainerRecreateRequest starts it at once") {
		t.Errorf("the image that ran: %q", got.Waiting)
	}
	p.Spec.Containers[0].Image = "nginx:9.9"
	containers := why.Explain(p, nil, []string{"app"})
	if !strings.Contains(containers[0].Waiting, "if the node has the image nginx:9.9 or can pull it") {
		t.Errorf("another image: %q", containers[0].Waiting)
	}
	why.AddEvents(containers, p, []corev1.Event{event("f", "Failed", "app", `Failed to pull image "nginx:9.9": not found`, 1, 2)})
	if !strings.Contains(containers[0].Waiting, `kubelet cannot pull its image: Failed to pull image "nginx:9.9": not found`) || strings.Contains(containers[0].Waiting, "at once") {
		t.Errorf("an image that cannot be pulled: %q", containers[0].Waiting)
	}
}

func TestRunSaysThatTheLogIsEmpty(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Logs = func(context.Context, string, string, string, int64) (string, error) { return "", nil }
	var out bytes.Buffer
	if err := why.Run(t.Context(), c, &out, "web"); err != nil || !strings.Contains(out.String(), "the log of the previous instance is empty\n") {
		t.Errorf("%v, got:\n%s", err, out.String())
	}
}

// A deadline in the drain ends a request before anything is stopped, and a container that has been restarted since admission is
// not stopped again.
func TestRequestThatHasStoppedNothingIsNotTheCause(t *testing.T) {
	t.Parallel()
	late := request("late")
	late.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue}}
	late.Status.ContainerRecreateStates[0].ContainerID, late.Status.ContainerRecreateStates[0].Phase = "", v1beta1.ContainerRecreateRequestFailed
	late.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{
		{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://app1"}},
	}
	if got := why.Explain(pod(), []v1beta1.ContainerRecreateRequest{late}, []string{"app"})[0]; got.Cause != why.CauseExit {
		t.Errorf("a deadline in the drain: %+v", got)
	}
	stopped, found := request("stopped"), request("found")
	stopped.Status.ContainerRecreateStates[0].StopBegan = new(metav1.NewMicroTime(noon))
	found.CreationTimestamp = at(-1)
	if got := why.Explain(pod(), []v1beta1.ContainerRecreateRequest{stopped, found}, []string{"app"})[0]; got.Request != "stopped" {
		t.Errorf("two requests for one instance: %+v", got)
	}
}
