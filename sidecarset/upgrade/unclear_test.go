package upgrade_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// unclear is a pod whose image was updated to another tag of the same digest, a second ago: the runtime shows the tag before.
func unclear(t *testing.T, containers ...v1beta1.SidecarContainer) *world {
	t.Helper()
	w := newWorld(t, containers...)
	w.image("log:1-again")
	w.update()
	for _, statuses := range [][]corev1.ContainerStatus{w.pod.Status.ContainerStatuses, w.pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == "log" {
				statuses[i].Image, statuses[i].ImageID = "log:1", "sha256:log:1"
			}
		}
	}
	return w
}

func TestAnUnclearUpdateIsOverWhenAllSidecarsAreReady(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change   func(*corev1.PodStatus)
		inFlight bool
	}{
		"all are ready":                        {func(*corev1.PodStatus) {}, false},
		"kubelet reports no generation":        {func(s *corev1.PodStatus) { s.ObservedGeneration = 0 }, false},
		"the application is not ready":         {func(s *corev1.PodStatus) { s.ContainerStatuses[0].Ready = false }, false},
		"the sidecar is not ready":             {func(s *corev1.PodStatus) { s.ContainerStatuses[1].Ready = false }, true},
		"another sidecar is not ready":         {func(s *corev1.PodStatus) { s.ContainerStatuses[2].Ready = false }, true},
		"a native sidecar is not ready":        {func(s *corev1.PodStatus) { s.InitContainerStatuses[0].Ready = false }, true},
		"the status of a sidecar is not known": {func(s *corev1.PodStatus) { s.ContainerStatuses = s.ContainerStatuses[:2] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := unclear(t, cold("log", "log:1"), cold("other", "log:1"), cold("mesh", "log:1", native))
			w.now = w.now.Add(time.Minute)
			tt.change(&w.pod.Status)
			if v := w.judge(); v.InFlight != tt.inFlight {
				t.Errorf("%s", v.String())
			}
		})
	}
}

// Kubelet had observed the new image and was then not running for a minute: the old container is ready, and others were updated too.
func TestAnUpdateIsNotOverWhileTheContainerIsTheOldOne(t *testing.T) {
	t.Parallel()
	for passed, inFlight := range map[time.Duration]bool{59 * time.Second: true, time.Minute: true, 9 * time.Minute: true, 10 * time.Minute: false} {
		w := newWorld(t, cold("log", "log:1"))
		w.image("log:2")
		begun := w.now
		w.write(w.target.Step(w.pod, true, w.now))
		w.pod.Status.ObservedGeneration = w.pod.Generation
		w.now = begun.Add(passed)
		if v := w.judge(); v.InFlight != inFlight {
			t.Errorf("after %s: %s", passed, v.String())
		}
	}
}

// The time of a record is from the clock of refit-manager, perhaps of another replica. Users who may annotate the pod can write a later one.
func TestARecordIsOfTheFutureByAMinuteAtMost(t *testing.T) {
	t.Parallel()
	for ahead, inFlight := range map[time.Duration]bool{0: true, 59 * time.Second: true, 62 * time.Second: false, time.Hour: false} {
		w := unclear(t, cold("log", "log:1"))
		begun := w.now.Add(-time.Second)
		w.now = begun.Add(-ahead)
		v := w.judge()
		if v.InFlight != inFlight || inFlight && !v.Again.Equal(begun.Add(time.Minute)) {
			t.Errorf("%s ahead: %s, again at %s", ahead, v.String(), v.Again)
		}
	}
}

// What an earlier spec has asked for is not written any more when there is a newer one.
func TestStagesOfAnEarlierSpecAreNotWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "log:2", cpu("200m")
	})
	w.write(w.target.Step(w.pod, true, w.now)) // the record; the resize comes next
	w.image("log:3")
	if v := w.judge(); v.Continue || !v.InFlight {
		t.Errorf("%+v", v)
	}
	if step, err := w.target.Step(w.pod, false, w.now); step != nil || err != nil {
		t.Errorf("a stage of the earlier spec is written: %+v, %v", step, err)
	}
	w.update()
	if got := w.pod.Spec.Containers[1]; got.Image != "log:3" || got.Resources.Requests.Cpu().String() != "200m" || w.restarts["log"] != 1 {
		t.Errorf("%+v, restarts %v", got, w.restarts)
	}
	w.is("Updated")
}
