package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestLogged(t *testing.T) {
	t.Parallel()
	const log = `time=2026-11-21T12:00:00.001Z level=INFO msg="stopping container" pod=demo/web container=app request=restart-app id=containerd://1
time=2026-11-21T12:00:01.002Z level=INFO msg="stopping container" pod=demo/web container=app request=restart-app id=containerd://2
time=2026-11-21T12:00:02.003Z level=INFO msg="stopping container" pod=demo/web container=app request=another id=containerd://3
time=2026-11-21T12:00:03.004Z level=INFO msg="stopped container" pod=demo/web container=app request=restart-app id=containerd://2
not a line of ours
`
	at, err := logged(log, "stopping container", "restart-app")
	if want := time.Date(2026, 11, 21, 12, 0, 1, 2e6, time.UTC); err != nil || !at.Equal(want) {
		t.Errorf("logged at %s, %v; want %s, the last time", at, err, want)
	}
	if _, err := logged(log, "request ended", "restart-app"); err == nil {
		t.Error("found what is not there")
	}
}

func TestPrintKeepsTheOrderOfEvents(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	pod := func(id, ip string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Status.PodIP = ip
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + strings.Repeat(id, 64)}}
		return p
	}
	recorded := timeline{
		before: pod("a", "10.0.0.1"), after: pod("b", "10.0.0.2"),
		admitted: at(0), stopCalled: at(40), exited: at(60), running: at(900), ready: at(1200), completed: at(1100),
	}
	var out bytes.Buffer
	recorded.print(&out)
	text := out.String()
	last := -1
	for _, word := range []string{"admitted", "stop called", "exited", "new container running", "completed", "ready", "aaaaaaaaaaaa -> bbbbbbbbbbbb", "10.0.0.1 -> 10.0.0.2"} {
		i := strings.Index(text[last+1:], word)
		if i < 0 {
			t.Fatalf("%q is not in its place:\n%s", word, text)
		}
		last += 1 + i
	}
	if !strings.Contains(text, "  900.000 ms   new container running") {
		t.Errorf("times:\n%s", text)
	}
}
