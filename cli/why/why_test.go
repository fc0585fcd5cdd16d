package why_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/why"
	"github.com/refit-project/refit/internal/console"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// pod has a container that runs its second instance, app2, since noon.
func pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	p.Spec.NodeName, p.Spec.Containers = "node-1", []corev1.Container{{Name: "app"}, {Name: "log"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{
			Name: "app", ContainerID: "containerd://app2", Ready: true, RestartCount: 1,
			State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(0)}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://app1", ExitCode: 143, FinishedAt: at(-1)}},
		},
		{Name: "log", ContainerID: "containerd://log1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(-600)}}},
	}
	return p
}

// request has stopped app1.
func request(name string) v1beta1.ContainerRecreateRequest {
	r := v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: at(-2), Labels: map[string]string{v1beta1.LabelPodUID: "u"},
		Annotations: map[string]string{v1beta1.AnnotationRequestedBy: "alice", v1beta1.AnnotationReason: "leak"},
	}}
	r.Spec.PodName = "web"
	r.Status.CompletionTime = new(at(1))
	r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestSucceeded, ContainerID: "containerd://app1"}}
	return r
}

// second has stopped app2, the first instance that was restarted.
func second() v1beta1.ContainerRecreateRequest {
	r := request("second")
	r.CreationTimestamp = at(2)
	r.Status.ContainerRecreateStates[0].ContainerID = "containerd://app2"
	r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{
		{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://app2", RestartCount: 1}},
	}
	return r
}

// TestThePreviousInstanceIsTheOneThatWasStopped: kubelet may report the end of an earlier one, whose log is gone.
func TestThePreviousInstanceIsTheOneThatWasStopped(t *testing.T) {
	t.Parallel()
	p := pod()
	p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[0].ContainerID = 2, "containerd://app3"
	got := why.Explain(p, []v1beta1.ContainerRecreateRequest{request("first"), second()}, []string{"app"})
	if len(got) != 1 || got[0].Previous || got[0].ExitCode != nil {
		t.Errorf("%+v, want no previous instance", got)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	type requests = []v1beta1.ContainerRecreateRequest
	app := func(p *corev1.Pod) *corev1.ContainerStatus { return &p.Status.ContainerStatuses[0] }
	for name, tt := range map[string]struct {
		pod      func(*corev1.Pod)
		requests func(requests) requests
		cause    why.Cause
		words    []string
	}{
		"a request": {
			requests: func(r requests) requests { return append(r, request("r")) },
			cause:    why.CauseRequest, words: []string{"ContainerRecreateRequest r ", "requested by alice: leak"},
		},
		"a request whose stopped instance was removed": {
			pod:      func(p *corev1.Pod) { app(p).LastTerminationState.Terminated = nil },
			requests: func(r requests) requests { return append(r, request("r")) },
			cause:    why.CauseRequest,
		},
		"a second request, whose stopped instance was removed: kubelet reports the one before it": {
			pod:      func(p *corev1.Pod) { app(p).RestartCount, app(p).ContainerID = 2, "containerd://app3" },
			requests: func(r requests) requests { return append(r, request("first"), second()) },
			cause:    why.CauseRequest, words: []string{"ContainerRecreateRequest second "},
		},
		"a crash after such a request, and kubelet's back-off": {
			pod: func(p *corev1.Pod) {
				app(p).RestartCount, app(p).ContainerID, app(p).State = 2, "containerd://app3", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
				app(p).LastTerminationState.Terminated.ContainerID = "containerd://app3"
			},
			requests: func(r requests) requests { return append(r, request("first"), second()) },
			cause:    why.CauseExit,
		},
		"a request that was long before": {
			pod: func(p *corev1.Pod) {
				app(p).LastTerminationState.Terminated = nil
				app(p).State.Running.StartedAt = at(100)
			},
			requests: func(r requests) requests { return append(r, request("r")) },
			cause:    why.CauseUnknown,
		},
		"a crash after a request": {
			pod:      func(p *corev1.Pod) { app(p).LastTerminationState.Terminated.ContainerID = "containerd://app1b" },
			requests: func(r requests) requests { return append(r, request("r")) },
			cause:    why.CauseExit, words: []string{"signal 15"},
		},
		"a request that has stopped nothing yet": {
			requests: func(r requests) requests {
				pending := request("r")
				pending.Status.ContainerRecreateStates[0].Phase = v1beta1.ContainerRecreateRequestPending
				return append(r, pending)
			},
			cause: why.CauseExit,
		},
		"a request that is about to stop the instance that runs": {
			pod: func(p *corev1.Pod) { app(p).LastTerminationState.Terminated = nil },
			requests: func(r requests) requests {
				now := request("r")
				now.Status.CompletionTime, now.Status.ContainerRecreateStates[0].ContainerID = nil, "containerd://app2"
				return append(r, now)
			},
			cause: why.CauseUnknown,
		},
		"under OpenKruise's CRD, which does not keep the instance": {
			requests: func(r requests) requests {
				old := request("r")
				old.Status.ContainerRecreateStates[0].ContainerID = ""
				old.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://app1"}}}
				return append(r, old)
			},
			cause: why.CauseRequest,
		},
		"its memory limit": {
			pod:   func(p *corev1.Pod) { app(p).LastTerminationState.Terminated.Reason = "OOMKilled" },
			cause: why.CauseExit, words: []string{"memory limit"},
		},
		"an exit code": {
			pod: func(p *corev1.Pod) {
				app(p).LastTerminationState.Terminated.ExitCode = 3
				app(p).LastTerminationState.Terminated.Message = "no config\x1b[2J"
			},
			cause: why.CauseExit, words: []string{"exit code 3", "no config[2J"},
		},
		"an update": {
			pod: func(p *corev1.Pod) {
				app(p).ImageID = "new"
				p.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"x","updateTimestamp":"2026-11-22T11:59:58Z","lastContainerStatuses":{"app":{"imageID":"old"}}}`}
			},
			cause: why.CauseUpdate,
		},
		"a crash after an update": {
			pod: func(p *corev1.Pod) {
				app(p).ImageID = "new"
				app(p).LastTerminationState.Terminated.FinishedAt = at(-3600)
				p.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"x","updateTimestamp":"2026-11-22T11:59:58Z","lastContainerStatuses":{"app":{"imageID":"old"}}}`}
			},
			cause: why.CauseExit,
		},
		"no restart": {pod: func(p *corev1.Pod) { *app(p) = corev1.ContainerStatus{Name: "app"} }, cause: why.CauseNone},
		"nothing known": {
			pod:   func(p *corev1.Pod) { app(p).LastTerminationState.Terminated = nil },
			cause: why.CauseUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod()
			if tt.pod != nil {
				tt.pod(p)
			}
			var of requests
			if tt.requests != nil {
				of = tt.requests(nil)
			}
			got := why.Explain(p, of, []string{"app"})
			if len(got) != 1 || got[0].Cause != tt.cause {
				t.Fatalf("%+v, want %s", got, tt.cause)
			}
			for _, words := range tt.words {
				if !strings.Contains(got[0].Message, words) {
					t.Errorf("no %q in %q", words, got[0].Message)
				}
			}
		})
	}
}

func TestBackoffIsExplained(t *testing.T) {
	t.Parallel()
	p := pod()
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container=app"}}
	if got := why.Explain(p, nil, nil); !strings.Contains(got[0].Waiting, "2026-11-22T12:00:39Z") || got[1].Cause != why.CauseNone {
		t.Errorf("%+v", got)
	}
}

func config(t *testing.T, more ...client.Object) why.Config {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	ours, other := request("ours"), request("other-pod-of-that-name")
	other.Labels[v1beta1.LabelPodUID] = "before"
	other.CreationTimestamp = at(-1)
	reader := fake.NewClientBuilder().WithScheme(kinds).WithObjects(append(more, pod(), &ours, &other)...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }).Build()
	return why.Config{API: reader, Namespace: "shop", Lines: 2, Logs: func(_ context.Context, namespace, pod, container string, lines int64) (string, error) {
		if namespace != "shop" || pod != "web" || container != "app" || lines != 2 {
			return "", errors.New("wrong log")
		}
		return "one\x1b[31m\ntwo\n", nil
	}}
}

func TestRunShowsTheRequesterAndTheLastLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := why.Run(t.Context(), config(t), &out, "web"); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"pod shop/web on node node-1", "container app: running since 2026-11-22T12:00:00Z, 1 restart\n", "Requested: restarted by ContainerRecreateRequest ours ",
		"requested by alice: leak", "    one[31m\n    two\n", "container log: running since 2026-11-22T11:50:00Z, 0 restarts\n  NotRestarted: has not been restarted\n",
	} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("no %q in:\n%s", words, out.String())
		}
	}
}

func TestRunSaysThatTheLogIsGone(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Logs = func(context.Context, string, string, string, int64) (string, error) {
		return "unable to retrieve container logs for containerd://first", nil
	}
	var out bytes.Buffer
	if err := why.Run(t.Context(), c, &out, "web"); err != nil || !strings.Contains(out.String(), "the log of the previous instance is gone\n") {
		t.Errorf("%v, got:\n%s", err, out.String())
	}
}

func TestRunWritesJSON(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml"} {
		c := config(t)
		c.Format, c.Containers = format, []string{"app"}
		var out bytes.Buffer
		if err := why.Run(t.Context(), c, &out, "web"); err != nil {
			t.Fatal(err)
		}
		var got []why.Container
		if format == "json" {
			if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 1 || got[0].RequestedBy != "alice" || *got[0].ExitCode != 143 {
				t.Errorf("%v: %s", err, out.String())
			}
		} else if !strings.Contains(out.String(), "requestedBy: alice") {
			t.Error(out.String())
		}
	}
}

func TestUnknownContainerIsAUsageError(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Containers = []string{"nope"}
	if err := why.Run(t.Context(), c, &bytes.Buffer{}, "web"); !errors.Is(err, console.ErrUsage) {
		t.Error(err)
	}
}
