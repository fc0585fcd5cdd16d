package upgrade_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// twoStages is a pod of which the resources have been changed, and the image is to be.
func twoStages(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "log:2", cpu("200m")
	})
	w.write(w.target.Step(w.pod, true, w.now)) // the resize
	w.now = w.now.Add(time.Second)
	w.kubelet()
	if v := w.judge(); !v.Continue || !v.InFlight {
		t.Fatalf("%+v", v)
	}
	return w
}

// Begun again it would have a new record, with what kubelet reports now as the state before.
func TestWhatWasBegunGoesOnBeforeAnythingIsBegun(t *testing.T) {
	t.Parallel()
	stages := twoStages(t)
	upgraded := newWorld(t, cold("proxy", "proxy:1", hot))
	upgraded.image("proxy:2")
	upgraded.write(upgraded.target.Step(upgraded.pod, true, upgraded.now))
	upgraded.kubelet()
	next := newWorld(t, cold("proxy", "proxy:1", hot))
	next.image("proxy:2")
	next.write(next.target.Step(next.pod, true, next.now))
	next.kubelet()
	next.image("proxy:3")
	for name, w := range map[string]*world{"the second stage": stages, "a hot upgrade": upgraded, "a hot upgrade to an earlier version": next} {
		want, err := w.target.Step(w.pod, false, w.now)
		if err != nil || want == nil {
			t.Fatalf("%s: %+v, %v", name, want, err)
		}
		for _, begin := range []bool{true, false} {
			if got, err := w.target.Step(w.pod, begin, w.now); err != nil || got == nil || got.Kind != want.Kind || !bytes.Equal(got.Patch(), want.Patch()) {
				t.Errorf("%s: %+v, want %+v (%v)", name, got, want, err)
			}
		}
	}
	for _, w := range []*world{upgraded, next} {
		want, _ := w.target.Step(w.pod, false, w.now)
		if got, err := w.target.Step(w.pod, true, w.now); err != nil || got == nil || !bytes.Equal(got.Patch(), want.Patch()) {
			t.Errorf("the next is begun before the last is over: %+v, %v", got, err)
		}
	}
}

func TestNothingIsWrittenToAPodThatIsNotReadable(t *testing.T) {
	t.Parallel()
	w := twoStages(t)
	w.pod.Spec.Containers[0].Resources = cpu("1e2147483647")
	if step, err := w.target.Step(w.pod, true, w.now); step != nil || err != nil {
		t.Errorf("%+v, %v", step, err)
	}
	if v := w.judge(); !v.Unreadable {
		t.Errorf("%+v", v)
	}
}

// A pod may say that it has the sidecars, and not which version: whoever may annotate it may have removed that.
func TestAPodThatDoesNotSayWhichVersionItHasIsNoneOfTheNewest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	delete(w.pod.Annotations, v1beta1.AnnotationSidecarSetHash)
	if v := w.judge(); v.State == "Updated" {
		t.Errorf("%+v", v)
	}
}

func TestTheRecordOfAReadyPodSaysNothingOfReadiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.image("log:2")
	w.update()
	if state := w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState]; state == "" || strings.Contains(state, "unready") {
		t.Errorf("%s", state)
	}
	if len(w.pod.Labels) > 0 {
		t.Errorf("labels %v, which the SidecarSet does not ask for", w.pod.Labels)
	}
}

// Where kubelet has to have stopped the old container by then, that is known sooner.
func TestAnUnclearUpdateIsOverSoonerWithAShortGracePeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	w.image("log:1-again")
	begun := w.now
	w.update()
	status := &w.pod.Status.ContainerStatuses[1]
	status.Image, status.ImageID = "log:1", "sha256:log:1"
	until := begun.Add(12 * time.Second)
	if v := w.judge(); !v.InFlight || !v.Again.Equal(until) {
		t.Errorf("%s, again at %s, want %s", v.String(), v.Again, until)
	}
	w.now = until
	w.is("Updated")
}

// The record of the update may be lost: then nothing says that the new container runs, and until when it is waited for.
func TestAHotUpgradeWithoutItsRecordWaitsForTheNewContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", complete(v1beta1.HotUpgradeCompletion{TimeoutSeconds: new(int32(60))})))
	w.image("proxy:2")
	w.write(w.target.Step(w.pod, true, w.now))
	w.kubelet()
	delete(w.pod.Annotations, v1beta1.AnnotationSidecarSetInPlaceUpdateState)
	status := &w.pod.Status.ContainerStatuses[2]
	status.Ready = false
	w.now = w.now.Add(time.Hour)
	if v := w.judge(); v.Continue || !v.InFlight {
		t.Errorf("%+v", v)
	}
	status.Ready = true
	w.write(w.target.Step(w.pod, false, w.now))
	w.twins("empty:1", "proxy:2", "proxy-2")
}

// A new container that kubelet does not start in time is given up too: the time counts for the update, and not for the container.
func TestAHotUpgradeThatKubeletDoesNotBeginIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", complete(v1beta1.HotUpgradeCompletion{TimeoutSeconds: new(int32(60))})))
	w.image("proxy:2")
	w.write(w.target.Step(w.pod, true, w.now))
	until := w.now.Add(time.Minute)
	if v := w.judge(); !v.InFlight || v.Continue || !v.Again.Equal(until) {
		t.Errorf("%+v, want again at %s", v, until)
	}
	if w.now = until; !w.judge().Continue {
		t.Errorf("%+v", w.judge())
	}
	w.write(w.target.Step(w.pod, false, w.now))
	w.twins("proxy:1", "empty:1", "proxy-1")
}
