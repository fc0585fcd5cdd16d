package timeline_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/timeline"
)

// underWay makes the request drain its pod. The container still runs, and its pod became ready just before.
func underWay(c *cluster) {
	c.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(10))}
	c.request.Status = v1beta1.ContainerRecreateRequestStatus{
		Phase:                   v1beta1.ContainerRecreateRequestRecreating,
		Conditions:              []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue, LastTransitionTime: second(350)}},
		ContainerRecreateStates: []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending}},
	}
	v1beta1.SetPreRecreateGrace(&c.request.Status, second(400).Time, "")
	c.pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{
		Name: "app", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(-5000)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://0", FinishedAt: second(-6000)}},
	}
	c.events = nil
}

func stopBegun(c *cluster) {
	underWay(c)
	c.request.Status.ContainerRecreateStates[0].ContainerID = "containerd://1"
	c.events = []*corev1.Event{event("p", "Killing", "refit-daemon", "{app}", "Stopping container app by ContainerRecreateRequest web-x, requested by alice", 900)}
}

func TestMomentsToComeAreNotShownAsUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*cluster)
		want   []string // words of lines, without the space between them
	}{
		"no daemon has taken it": {func(c *cluster) { underWay(c); c.request.Status = v1beta1.ContainerRecreateRequestStatus{} }, []string{
			"accepted not yet: no daemon has taken the request", "pod made not ready not yet: no daemon has taken the request", "app stop began not yet: no daemon has taken the request",
			"previous instance ended not yet: the stop has not begun", "completed not yet: the request is under way",
		}},
		"it waits for the manager": {func(c *cluster) { underWay(c); c.request.Status.Conditions = c.request.Status.Conditions[:1] }, []string{
			"pod made not ready not yet: waiting for refit-manager to make the pod not ready", "app stop began not yet: waiting for refit-manager to make the pod not ready",
		}},
		"it drains": {underWay, []string{
			"12:00:00 ~0s web - pod made not ready condition PreRecreateGrace", "app stop began not yet: draining until 12:00:10 UTC: the pod is out of its Services",
			"app previous instance ended not yet: the stop has not begun", "app new instance started not yet: the stop has not begun",
			"containers ready not yet: the stop of container app has not begun", "completed not yet: the request is under way",
		}},
		"it stops the container": {stopBegun, []string{
			"12:00:00.900 0.600s web app stop began Event Killing", "previous instance ended not yet: the container is being stopped", "new instance started not yet: the container is being stopped",
			"containers ready not yet: container app has not been started again",
		}},
		"kubelet has not started the container again": {func(c *cluster) {
			stopBegun(c)
			c.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
			c.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://1", FinishedAt: second(1200)}
		}, []string{"12:00:01 ~1s web app previous instance ended", "new instance started not yet: kubelet has not started the container again", "containers ready not yet: container app has not been started again"}},
		"the new instance is not ready": {func(c *cluster) {
			stopBegun(c)
			c.pod.Status.ContainerStatuses[0] = newCluster().pod.Status.ContainerStatuses[0]
			c.pod.Status.Conditions[0].Status = corev1.ConditionFalse
		}, []string{"12:00:01 ~1s web app new instance started", "containers ready not yet: the pod's condition ContainersReady is not True", "completed not yet: the request is under way"}},
	} {
		c := newCluster()
		tt.change(c)
		out := c.run(t, "", "crr/web-x")
		var lines []string
		for line := range strings.Lines(out) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		for _, want := range tt.want {
			if !strings.Contains(strings.Join(lines, "\n"), want) {
				t.Errorf("%s: no %q in:\n%s", name, want, out)
			}
		}
		if strings.Contains(out, "not known") {
			t.Errorf("%s: something is not known:\n%s", name, out)
		}
	}
}

func TestJSONAndThePictureTellMomentsToComeFromUnknownOnes(t *testing.T) {
	t.Parallel()
	c := newCluster()
	stopBegun(c)
	var moments []timeline.Moment
	if err := json.Unmarshal([]byte(c.run(t, "json", "crr/web-x")), &moments); err != nil {
		t.Fatal(err)
	}
	for _, m := range moments {
		if m.NotYet == (m.Time != nil) {
			t.Errorf("%+v", m)
		}
	}
	out := c.run(t, "svg", "crr/web-x")
	for _, want := range []string{"web: previous instance<", "web: being stopped<"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	if strings.Contains(out, "not known") {
		t.Errorf("something is not known:\n%s", out)
	}
}
