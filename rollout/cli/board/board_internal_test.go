package board

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func requestOf(pod string, phase v1beta1.ContainerRecreateRequestPhase, id string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Name: "web-x-" + pod}}
	r.Spec.PodName = pod
	r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://old" + pod}}}
	if phase != "" {
		r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: phase, ContainerID: id}}
	}
	return r
}

func podOf(name, id string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return p
}

func TestBoardFollowsARestart(t *testing.T) {
	t.Parallel()
	b := New()
	b.Pod(podOf("web-1", "oldweb-1"), after(0))
	for _, step := range []struct {
		at   float64
		do   func(now time.Time) []string
		news string
		row  string
	}{
		{0, func(now time.Time) []string { return b.Request(requestOf("web-1", "", ""), now) }, "pod web-1, container app: waiting", "web-1 app oldweb-1 - - - - waiting"},
		{0.05, func(now time.Time) []string {
			r := requestOf("web-1", v1beta1.ContainerRecreateRequestPending, "")
			r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(10))}
			r.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
			return b.Request(r, now)
		}, "pod web-1, container app: draining", "web-1 app oldweb-1 - - - - draining"},
		{0.1, func(now time.Time) []string {
			return b.Request(requestOf("web-1", v1beta1.ContainerRecreateRequestPending, "containerd://oldweb-1"), now)
		}, "pod web-1, container app: stopping", "web-1 app oldweb-1 - 0.1s - - stopping"},
		{0.4, func(now time.Time) []string {
			return b.Request(requestOf("web-1", v1beta1.ContainerRecreateRequestRecreating, "containerd://oldweb-1"), now)
		}, "pod web-1, container app: starting", "web-1 app oldweb-1 - 0.1s - - starting"},
		{1.2, func(now time.Time) []string { b.Pod(podOf("web-1", "new"), now); return nil }, "", "web-1 app oldweb-1 new 0.1s 1.2s - starting"},
		{1.5, func(now time.Time) []string {
			r := requestOf("web-1", v1beta1.ContainerRecreateRequestSucceeded, "containerd://oldweb-1")
			crr.Complete(&r.Status, crr.Outcome{}, 1, now)
			return b.Request(r, now)
		}, "pod web-1, container app: restarted in 1.5 s (containerd://oldweb-1 -> containerd://new)", "web-1 app oldweb-1 new 0.1s 1.2s 1.5s restarted"},
		{2, func(now time.Time) []string {
			r := requestOf("web-1", v1beta1.ContainerRecreateRequestSucceeded, "containerd://oldweb-1")
			crr.Complete(&r.Status, crr.Outcome{}, 1, now)
			return b.Request(r, now)
		}, "", "web-1 app oldweb-1 new 0.1s 1.2s 1.5s restarted"},
	} {
		news := strings.Join(step.do(after(step.at)), ";")
		lines := b.Lines(false, 200, 40)
		row := ""
		if len(lines) > 1 {
			row = strings.Join(strings.Fields(lines[1]), " ")
		}
		if news != step.news || row != step.row {
			t.Errorf("after %.1f s: news %q, row %q\nwant %q, %q", step.at, news, row, step.news, step.row)
		}
	}
}

func TestBoardShowsWhatCountsAndIsInColourOnTerminals(t *testing.T) {
	t.Parallel()
	b := New()
	for i := range 30 {
		r := requestOf(fmt.Sprintf("web-%02d", i), v1beta1.ContainerRecreateRequestSucceeded, "containerd://x")
		outcome := crr.Outcome{}
		if i == 3 {
			outcome = crr.Outcome{Reason: crr.ReasonStopFailed}
		}
		if i < 28 {
			crr.Complete(&r.Status, outcome, 1, after(float64(i)))
		} else {
			r.Status.ContainerRecreateStates[0].Phase = v1beta1.ContainerRecreateRequestRecreating
		}
		b.Request(r, after(float64(i)))
	}
	lines := b.Lines(console.Colour(true), 200, 40)
	last := len(lines) - 1
	if lines[last] != "... and 15 more" {
		t.Errorf("the last line is %q", lines[last])
	}
	var shown []string
	for _, line := range lines[1:last] {
		shown = append(shown, strings.Fields(line)[0])
	}
	want := []string{"web-03", "web-16", "web-17", "web-18", "web-19", "web-20", "web-21", "web-22", "web-23", "web-24", "web-25", "web-26", "web-27", "web-28", "web-29"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for i, code := range map[int]string{1: "\x1b[31mfailed: StopFailed\x1b[0m", 2: "\x1b[32mrestarted\x1b[0m", 15: "\x1b[33mstarting\x1b[0m"} {
		if !strings.HasSuffix(lines[i], code) {
			t.Errorf("%q does not end with %q", lines[i], code)
		}
	}
}

func TestUpdateOfAPodIsShownUntilItsNewInstanceIsReady(t *testing.T) {
	t.Parallel()
	pod := func(id string, running bool) *corev1.Pod {
		p := &corev1.Pod{}
		p.Name = "web-0"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: id}}
		if running {
			p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
		}
		return p
	}
	b, containers, old := New(), []string{"app"}, map[string]string{"app": "containerd://old"}
	var lines []string
	for _, one := range []struct {
		pod *corev1.Pod
		to  Progress
		at  time.Time
	}{
		{pod("containerd://old", true), Progress{Containers: containers, Old: old, State: "updating"}, after(0)},
		{pod("containerd://old", false), Progress{Containers: containers, Old: old, State: "updating"}, after(1)},
		{pod("containerd://new", true), Progress{Containers: containers, Old: old, State: "not ready"}, after(2)},
		{pod("containerd://new", true), Progress{Containers: containers, Old: old, State: "updated", Ended: true}, after(3)},
		{pod("containerd://new", true), Progress{Containers: containers, Old: old, State: "not ready"}, after(4)}, // for a moment
		{pod("containerd://new", true), Progress{Containers: containers, Old: old, State: "updated", Ended: true}, after(5)},
		{pod("containerd://new", true), Progress{Containers: containers, State: "updating"}, after(10)}, // another update, without a restart
		{pod("containerd://new", true), Progress{Containers: containers, State: "updated", Ended: true}, after(12)},
	} {
		lines = append(lines, b.Update(one.pod, one.to, one.at)...)
	}
	want := []string{
		"pod web-0, container app: updating", "pod web-0, container app: not ready", "pod web-0, container app: updated in 3.0 s (containerd://old -> containerd://new)",
		"pod web-0, container app: not ready", "pod web-0, container app: updated in 5.0 s (containerd://old -> containerd://new)",
		"pod web-0, container app: updating", "pod web-0, container app: updated in 2.0 s (- -> -)",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
