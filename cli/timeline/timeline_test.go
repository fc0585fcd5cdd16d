package timeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/timeline"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// second is a time of the API, which has no part of a second.
func second(ms int) metav1.Time { return metav1.NewTime(at(ms).Truncate(time.Second)) }

// cluster has a pod whose container app was restarted by a request, and whose container log was not.
type cluster struct {
	request *v1beta1.ContainerRecreateRequest
	pod     *corev1.Pod
	events  []*corev1.Event
	rollout *v1alpha1.RestartRollout
}

func newCluster() *cluster {
	c := &cluster{}
	c.request = &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-x", UID: "r", CreationTimestamp: second(300), Labels: map[string]string{v1beta1.LabelPodUID: "p"},
		Annotations: map[string]string{v1beta1.AnnotationRequestedBy: "alice", v1beta1.AnnotationAdmittedAt: at(300).Format(time.RFC3339Nano)},
	}}
	c.request.Spec.PodName = "web"
	c.request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://1"}}}
	c.request.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue, LastTransitionTime: second(350)}}
	crr.Complete(&c.request.Status, crr.Outcome{}, 1, second(2400).Time)
	c.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "p"}}
	c.pod.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "log"}}
	c.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: second(2300)}}
	c.pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{
			Name: "app", ContainerID: "containerd://2", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(1700)}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://1", FinishedAt: second(900)}},
		},
		{Name: "log", ContainerID: "containerd://3", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(-60000)}}},
	}
	c.events = []*corev1.Event{
		event("p", "Killing", "refit-daemon", "{app}", "Stopping container app by ContainerRecreateRequest web-x, requested by alice", 400),
		event("p", "Killing", "refit-daemon", "{app}", "Stopping container app by ContainerRecreateRequest web-x2, requested by alice", 100),
		event("p", "Started", "kubelet", "{app}", "Container started", 1712),
		event("p", "Started", "kubelet", "{app}", "Container started", -5000),
		event("p", "Started", "kubelet", "{log}", "Container started", 1000),
		event("r", "ContainersRecreated", "refit-daemon", "", "Recreated 1 container of pod web", 2450),
	}
	return c
}

func event(uid types.UID, reason, by, path, message string, ms int) *corev1.Event {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web.%x", at(ms).UnixNano())}, Reason: reason, Message: message, Count: 1, ReportingController: by}
	e.InvolvedObject = corev1.ObjectReference{Namespace: "shop", UID: uid, FieldPath: path}
	e.FirstTimestamp, e.LastTimestamp = second(ms), second(ms)
	return e
}

func (c *cluster) run(t *testing.T, format, target string) string {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(kinds).WithObjects(c.request).WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
		return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
	})
	if c.pod != nil {
		builder.WithObjects(c.pod)
	}
	if c.rollout != nil {
		builder.WithObjects(c.rollout)
	}
	for _, e := range c.events {
		builder.WithObjects(e)
	}
	parsed, err := timeline.ParseTarget(target)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := timeline.Run(t.Context(), timeline.Config{API: builder.Build(), Namespace: "shop", Format: format}, &out, parsed); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const footer = "\nTimes without decimals were recorded as whole seconds. The clocks of the API server, of refit-manager and of the nodes may differ.\n"

func TestTimelineOfARequest(t *testing.T) {
	t.Parallel()
	want := `crr/web-x: pod/web, Succeeded, requested by alice

TIME (UTC)     AFTER    POD   CONTAINER   WHAT                      RECORDED BY
12:00:00.300   0.000s   web   -           admitted                  annotation refit.dev/admitted-at, by refit-manager
12:00:00       ~0s      web   -           accepted                  condition Accepted of the request
12:00:00.400   0.100s   web   app         stop began                Event Killing, by refit-daemon
12:00:00       ~0s      web   app         previous instance ended   lastState of the container
12:00:01.712   1.412s   web   app         new instance started      Event Started, by kubelet
12:00:02       ~2s      web   -           containers ready          condition ContainersReady of the pod
12:00:02.450   2.150s   web   -           completed                 Event ContainersRecreated, by refit-daemon
` + footer
	if diff := cmp.Diff(want, newCluster().run(t, "", "crr/web-x")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Unknown times are shown as unknown, with the reason.
func TestUnknownMomentsAreShownAsUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   []string // words of lines, without the space between them
	}{
		"Events have expired": {func(c *cluster) { c.events = nil }, []string{
			"- - web app stop began not known: there is no Event Killing of the request; Events are kept for an hour,", "12:00:01 ~1s web app new instance started state of the container", "12:00:02 ~2s web - completed completionTime of the request",
		}},
		"Events have been combined": {func(c *cluster) {
			c.events[0].Message, c.events[0].Count = "(combined from similar events): Stopping container app by ContainerRecreateRequest web-z, requested by alice", 7
			c.events[0].LastTimestamp = second(90000)
			c.events = append(c.events[:1], c.events[2:]...)
		}, []string{"- - web app stop began not known: the Events Killing of many stops of the container are combined into one, which names only the last of them"}},
		"Events are missing": {func(c *cluster) {
			c.events, c.request.CreationTimestamp = nil, metav1.NewTime(time.Now().Add(-50*time.Minute))
		}, []string{"stop began not known: there is no Event Killing of the request; of many Events about a pod some are not sent"}},
		"another request has stopped it": {func(c *cluster) {
			c.events = c.events[1:]
			c.events[0].Message = "Stopping container app by ContainerRecreateRequest web-y, requested by bob"
		}, []string{"stop began not known: another request has stopped the container: web-y"}},
		"the pod is gone": {func(c *cluster) { c.pod, c.events = nil, nil }, []string{
			"previous instance ended not known: the pod is gone", "new instance started not known: the pod is gone", "containers ready not known: the pod is gone",
		}},
		"another pod of that name": {func(c *cluster) { c.pod.UID, c.events = "other", nil }, []string{"new instance started not known: the pod is gone"}},
		"restarted again": {func(c *cluster) {
			c.events = nil
			c.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.ContainerID = "containerd://2"
			c.pod.Status.ContainerStatuses[0].State.Running.StartedAt = second(90000)
			c.pod.Status.Conditions[0].LastTransitionTime = second(91000)
		}, []string{
			"previous instance ended not known: lastState of the container is of another instance", "new instance started not known: the instance that runs now is not the first after the stop",
			"containers ready not known: the pod's condition ContainersReady has changed since",
		}},
		"removed to skip the back-off": {func(c *cluster) {
			c.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = nil
			c.events = append(c.events, event("r", "RestartBackoffSkipped", "refit-daemon", "", "Removing the exited instance of container app so that", 420))
		}, []string{"previous instance ended not known: it was removed so that kubelet's back-off does not apply"}},
		"an Event that was repeated": {func(c *cluster) { c.events[2].Count = 3 }, []string{"12:00:01 ~1s web app new instance started Event Started, by kubelet"}},
		"not admitted by refit-manager": {func(c *cluster) { delete(c.request.Annotations, v1beta1.AnnotationAdmittedAt) }, []string{
			"12:00:00 ~0s web - admitted creationTimestamp of the request",
		}},
		"never ready in between": {func(c *cluster) { c.pod.Status.Conditions[0].LastTransitionTime = second(-90000) }, []string{
			"containers ready not known: the pod's condition ContainersReady did not change in the restart",
		}},
		"under way": {func(c *cluster) {
			c.request.Status = v1beta1.ContainerRecreateRequestStatus{Phase: v1beta1.ContainerRecreateRequestRecreating}
			c.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{}
			c.pod.Status.Conditions[0].Status = corev1.ConditionFalse
			c.events = c.events[:1]
		}, []string{
			"accepted not known: the request does not have the condition Accepted", "new instance started not yet: kubelet has not started the container again",
			"containers ready not yet: container app has not been started again", "completed not yet: the request is under way",
		}},
		"failed": {func(c *cluster) {
			c.request.Status = v1beta1.ContainerRecreateRequestStatus{}
			crr.Complete(&c.request.Status, crr.Outcome{Reason: crr.ReasonStopFailed, Message: "no"}, 1, second(2400).Time)
			c.events[5].Reason = "RecreateFailed"
		}, []string{"12:00:02.450 2.150s web - failed: StopFailed Event RecreateFailed, by refit-daemon"}},
		"drained": {func(c *cluster) {
			c.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(5))}
			made := event("r", "PodMadeNotReady", "refit-manager", "", "", 320)
			made.Name, made.Count, made.EventTime = "any", 0, metav1.NewMicroTime(at(320))
			c.events = append(c.events, made)
		}, []string{"12:00:00.320 0.020s web - pod made not ready Event PodMadeNotReady, by refit-manager"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			out := c.run(t, "", "crr/web-x")
			var lines []string
			for line := range strings.Lines(out) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(lines, "\n"), want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
}

// Who may create Events, or requests, cannot write a line or control the terminal.
func TestTextOfOthersDoesNotControlTheTerminal(t *testing.T) {
	t.Parallel()
	c := newCluster()
	lines := strings.Count(c.run(t, "", "crr/web-x"), "\n")
	c.request.Annotations[v1beta1.AnnotationRequestedBy] = "alice\x1b[2J\nroot"
	c.events[0].ReportingController, c.events[0].Source.Component = "", "refit-daemon\n12:00:00\tevil\x1b[2J"
	out := c.run(t, "", "crr/web-x")
	if strings.Count(out, "\n") != lines || strings.Contains(out, "\x1b") || !strings.Contains(out, "by refit-daemon12:00:00evil[2J\n") {
		t.Errorf("%q", out)
	}
}

func TestPictureOfARequest(t *testing.T) {
	t.Parallel()
	c := newCluster()
	out := c.run(t, "svg", "crr/web-x")
	for _, want := range []string{">app</text>", ">log</text>", "web: previous instance<", "web: new instance<", "web: not restarted<", "completed after 2.1 s", "requested by alice"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(out, "not known") {
		t.Error("everything is known")
	}
	c.events = append(c.events, event("r", "RestartBackoffSkipped", "refit-daemon", "", "Removing the exited instance of container app so that", 420))
	if out = c.run(t, "svg", "crr/web-x"); !strings.Contains(out, "being stopped; its end is not known") || !strings.Contains(out, "not known: previous instance ended") {
		t.Errorf("the end of the instance is not known:\n%s", out)
	}
}

func TestTimelineOfARollout(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.rollout = &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-r", UID: "rollout"}}
	c.rollout.Spec.TargetRef = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	c.rollout.Status.RestartedPods = 3
	c.request.Labels[v1alpha1.LabelRestartRollout] = "rollout"
	out := c.run(t, "", "restartrollout/web-r")
	for _, want := range []string{"restartrollout/web-r: deployment/web", "2 of the rollout's requests have been deleted.", "stop began", "completed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	c.rollout.UID = "other"
	if out := c.run(t, "svg", "restartrollouts.refit.dev/web-r"); !strings.Contains(out, "</svg>") {
		t.Errorf("without requests:\n%s", out)
	}
}

func TestMomentsAsJSON(t *testing.T) {
	t.Parallel()
	var moments []timeline.Moment
	if err := json.Unmarshal([]byte(newCluster().run(t, "json", "crr/web-x")), &moments); err != nil {
		t.Fatal(err)
	}
	if len(moments) != 7 || moments[2].What != "stop began" || !moments[2].Time.Equal(new(metav1.NewMicroTime(at(400)))) || moments[2].WholeSeconds || !moments[1].WholeSeconds {
		t.Errorf("%+v", moments)
	}
	if out := newCluster().run(t, "yaml", "crr/web-x"); !strings.Contains(out, "  what: stop began\n") {
		t.Error(out)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]timeline.Target{
		"crr/a": {Request: "a"}, "ContainerRecreateRequest.apps.kruise.io/a": {Request: "a"}, "restartrollout/b": {Rollout: "b"}, "restartrollout.refit.dev/b": {Rollout: "b"},
		"rr/b": {Rollout: "b"}, "inplaceupdatepolicy.refit.dev/c": {Policy: "c"}, "restartrollout.apps/b": {}, "crr.refit.dev/a": {},
		"a": {}, "crr/": {}, "pod/a": {}, "crr/a/b": {},
	} {
		got, err := timeline.ParseTarget(text)
		if got != want || (want == timeline.Target{}) != errors.Is(err, console.ErrUsage) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
