package cli_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/internal/console"
)

// watched is a cluster that delivers events of its pod, only to the first watch.
type watched struct {
	*cluster
	events []watch.Event
}

func (w *watched) WatchPod(context.Context, *corev1.Pod) (watch.Interface, error) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: len(w.events)})
	for _, event := range w.events {
		events.Action(event.Type, event.Object)
	}
	w.events = nil
	return events, nil
}

// A change is seen when it is made; what is lost is noticed within ten seconds.
func TestChangesOfThePodAreFollowed(t *testing.T) {
	t.Parallel()
	before, after := following()
	other := before.DeepCopy()
	for name, tt := range map[string]struct {
		events []watch.Event
		took   time.Duration
		fails  string
	}{
		"changed":              {[]watch.Event{{Type: watch.Modified, Object: after}}, 0, ""},
		"changed, after other": {[]watch.Event{{Type: watch.Bookmark, Object: other}, {Type: watch.Added, Object: other}, {Type: watch.Modified, Object: after}}, 0, ""},
		"nothing comes":        {nil, 10 * time.Second, ""},
		"the watch ends":       {[]watch.Event{{Type: watch.Error, Object: &metav1.Status{Message: "too old"}}}, 0, ""},
		"deleted":              {[]watch.Event{{Type: watch.Deleted, Object: before}}, 0, "the pod has been deleted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &watched{events: tt.events, cluster: &cluster{read: func(n int) (*corev1.Pod, error) {
				if n == 1 {
					return before, nil
				}
				return after, nil
			}}}
			var out bytes.Buffer
			began := time.Now()
			err := inplacecli.Update(t.Context(), inplacecli.Config{API: api, Output: console.NewOutput(&out, false)}, "demo", inplacecli.Target{Kind: inplacecli.KindPod, Name: "web"}, images(t, "app=app:2"))
			if (err == nil) != (tt.fails == "") || err != nil && (!errors.Is(err, console.ErrFailed) || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("%s: %v; said:\n%s", name, err, out.String())
			}
			if took := time.Since(began); took != tt.took {
				t.Errorf("%s: after %s, want %s", name, took, tt.took)
			}
			if reads := map[bool]int{true: 1, false: 2}[strings.HasPrefix(name, "changed") || tt.fails != ""]; api.reads != reads {
				t.Errorf("%s: read %d times, want %d", name, api.reads, reads)
			}
		})
	}
}

// The end says what has become of the pod: that it is the same, and for how long a container was down.
func TestSummaryComparesThePodWithTheOneBefore(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	terminated := func(id string, at time.Time) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id, FinishedAt: metav1.NewTime(at)}}
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"down for a while": {func(*corev1.Pod) {}, "container app: app:2, restarts 4 -> 5, down for about 3 s\n"},
		"the clock went back": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState = terminated("containerd://1", ended.Add(time.Minute))
		}, "restarts 4 -> 5, down for about 0 s\n"},
		"another end is known": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState = terminated("containerd://0", ended)
		}, "restarts 4 -> 5\n"},
		"no end is known": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{} }, "restarts 4 -> 5\n"},
		"kubelet does not say when it ended": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState = terminated("containerd://1", time.Time{})
		}, "restarts 4 -> 5\n"},
		"it is the same pod":        {func(*corev1.Pod) {}, "UID u and IP 10.0.0.1: as before\n"},
		"it has another address":    {func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.2" }, "UID u and IP 10.0.0.2: changed\n"},
		"another container runs on": {func(*corev1.Pod) {}, "container log: not touched\n"},
		"it was not ready, and is": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, "not ready before the update, ready 0s after it began\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			before, after := following()
			log := corev1.ContainerStatus{Name: "log", ContainerID: "containerd://l", Ready: true}
			before.Status.PodIP = "10.0.0.1"
			before.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://1", ImageID: "x", RestartCount: 4}, log}
			now := &after.Status.ContainerStatuses[0]
			now.RestartCount, now.LastTerminationState = 5, terminated("containerd://1", ended)
			now.State.Running.StartedAt = metav1.NewTime(ended.Add(3 * time.Second))
			after.Status.PodIP, after.Status.ContainerStatuses = "10.0.0.1", append(after.Status.ContainerStatuses, log)
			tt.change(after)
			api := &watched{cluster: &cluster{read: func(int) (*corev1.Pod, error) { return before, nil }}, events: []watch.Event{{Type: watch.Modified, Object: after}}}
			var out bytes.Buffer
			err := inplacecli.Update(t.Context(), inplacecli.Config{API: api, Output: console.NewOutput(&out, false)}, "demo", inplacecli.Target{Kind: inplacecli.KindPod, Name: "web"}, images(t, "app=app:2"))
			if err != nil || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%s: %v; said:\n%s", name, err, out.String())
			}
		})
	}
}

func TestSaysWhenKubeletTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before, _ := following()
		before.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 5, 0, time.UTC))}},
		}}
		said, err := update(t, &cluster{pod: before}, inplacecli.Config{Timeout: time.Second}, images(t, "app=app:2"))
		if console.ExitCode(err) != console.ExitTimeout || !strings.Contains(said, "CrashLoopBackOff: container app: back-off 40s restarting failed container; kubelet tries again at 00:00:45\n") {
			t.Errorf("%v; said:\n%s", err, said)
		}
	})
}
