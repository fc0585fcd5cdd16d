package upgrade_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// twins checks the images of both containers and which works.
func (w *world) twins(first, second, working string) {
	w.t.Helper()
	images := map[string]string{}
	for _, list := range [][]corev1.Container{w.pod.Spec.Containers, w.pod.Spec.InitContainers} {
		for _, c := range list {
			images[c.Name] = c.Image
		}
	}
	if images["proxy-1"] != first || images["proxy-2"] != second || w.pod.Annotations[v1beta1.AnnotationHotUpgradeWorking] != `{"proxy":"`+working+`"}` {
		w.t.Errorf("images %v, working %s; want %s, %s, %s", images, w.pod.Annotations[v1beta1.AnnotationHotUpgradeWorking], first, second, working)
	}
}

func TestHotUpgradeIsTwoWrites(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string][]func(*v1beta1.SidecarContainer){"container": {hot}, "native sidecar": {hot, native}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("proxy", "proxy:1", kind...))
			w.is("Updated")
			w.image("proxy:2")
			w.is("Outdated")
			w.write(w.target.Step(w.pod, true, w.now))
			w.twins("proxy:1", "proxy:2", "proxy-2")
			if v := w.pod.Annotations[v1beta1.PrefixSidecarSetVersion+"proxy-2"]; v != "500" {
				t.Errorf("version %s, not the resource version of the SidecarSet", v)
			}
			w.kubelet()
			if v := w.judge(); !v.InFlight || !v.Continue {
				t.Errorf("%+v", v)
			}
			w.write(w.target.Step(w.pod, false, w.now))
			w.twins("empty:1", "proxy:2", "proxy-2")
			w.kubelet()
			w.is("Updated")
			if len(w.writes) != 2 || w.restarts["proxy-1"] != 1 || w.restarts["proxy-2"] != 1 {
				t.Errorf("writes %v, restarts %v", w.writes, w.restarts)
			}
		})
	}
}

// The image is set back before kubelet has emptied the old container: with its old image again it would not be restarted, would
// count as the one that has taken over, and the one that serves would be emptied.
func TestNextHotUpgradeWaitsForTheEmptiedContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.image("proxy:2")
	w.write(w.target.Step(w.pod, true, w.now))
	w.kubelet()
	w.write(w.target.Step(w.pod, false, w.now))
	w.twins("empty:1", "proxy:2", "proxy-2")
	w.image("proxy:1") // kubelet has not acted yet
	if step, err := w.target.Step(w.pod, true, w.now); step != nil || err != nil {
		t.Fatalf("begun before the container is empty: %+v, %v", step, err)
	}
	if v := w.judge(); v.State != "Outdated" || !v.InFlight || v.Continue {
		t.Errorf("%+v", v)
	}
	w.kubelet()
	w.write(w.target.Step(w.pod, true, w.now))
	w.twins("proxy:1", "proxy:2", "proxy-1")
	w.kubelet()
	w.write(w.target.Step(w.pod, false, w.now))
	w.kubelet()
	w.twins("proxy:1", "empty:1", "proxy-1")
	w.is("Updated")
	if w.restarts["proxy-1"] != 2 || w.restarts["proxy-2"] != 2 {
		t.Errorf("restarts %v", w.restarts)
	}
}

func TestRollbackRepairsABrokenHotUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.faulty["bad"] = true
	w.image("bad")
	w.update()
	w.is("Updated, in flight, failed: container proxy-2: no such image")
	w.image("proxy:1")
	w.update()
	w.twins("proxy:1", "empty:1", "proxy-1")
	w.is("Updated")
	if w.restarts["proxy-1"] != 0 {
		t.Errorf("the container that served was restarted: %v", w.restarts)
	}
}

func TestNewSpecDuringAHotUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.image("proxy:2")
	w.write(w.target.Step(w.pod, true, w.now))
	w.kubelet() // proxy-2 has taken over
	w.image("proxy:3")
	w.update() // proxy-1 is emptied first, then upgraded
	w.is("Outdated")
	w.update()
	w.twins("proxy:3", "empty:1", "proxy-1")
	w.is("Updated")
}

func complete(c v1beta1.HotUpgradeCompletion) func(*v1beta1.SidecarContainer) {
	return func(s *v1beta1.SidecarContainer) {
		hot(s)
		s.UpgradeStrategy.Completion = &c
	}
}

func TestHotUpgradeIsCompletedByAcknowledgement(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		completion v1beta1.HotUpgradeCompletion
		wrong, ack func(*corev1.Pod)
	}{
		"annotation": {
			v1beta1.HotUpgradeCompletion{Type: v1beta1.CompletionAnnotation, Annotation: "example.com/took-over"},
			func(pod *corev1.Pod) { pod.Annotations["example.com/took-over"] = "1" }, // of the version before
			func(pod *corev1.Pod) { pod.Annotations["example.com/took-over"] = "500" },
		},
		"condition": {
			v1beta1.HotUpgradeCompletion{Type: v1beta1.CompletionCondition, ConditionType: "TookOver"},
			func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: "Other", Status: corev1.ConditionTrue}, {Type: "TookOver", Status: corev1.ConditionFalse}}
			},
			func(pod *corev1.Pod) { pod.Status.Conditions[1].Status = corev1.ConditionTrue },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("proxy", "proxy:1", complete(tc.completion)))
			w.image("proxy:2")
			w.update()
			for _, change := range []func(*corev1.Pod){func(*corev1.Pod) {}, tc.wrong} {
				if change(w.pod); w.judge().Continue {
					t.Error("the old container is emptied before the new one has taken over")
				}
			}
			tc.ack(w.pod)
			if !w.write(w.target.Step(w.pod, false, w.now)) {
				t.Fatal("nothing is written")
			}
			w.twins("empty:1", "proxy:2", "proxy-2")
		})
	}
}

func TestHotUpgradeIsAbortedInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", complete(v1beta1.HotUpgradeCompletion{TimeoutSeconds: new(int32(30))})))
	w.faulty["bad"] = true
	w.image("bad")
	w.update()
	if v := w.judge(); v.Again.IsZero() {
		t.Errorf("%+v", v)
	}
	w.now = w.now.Add(time.Minute)
	if !w.write(w.target.Step(w.pod, false, w.now)) {
		t.Fatal("not aborted")
	}
	w.kubelet()
	w.twins("proxy:1", "empty:1", "proxy-1")
	w.is("Aborted: the new container of a hot upgrade did not take over in time")
	w.image("proxy:3")
	w.update()
	w.twins("empty:1", "proxy:3", "proxy-2")
	w.is("Updated")
	w.faulty = nil
	w.image("bad") // aborted once, and another spec since: it is not tried again by itself
	w.is("Aborted: the new container of a hot upgrade did not take over in time")
	delete(w.pod.Annotations, v1beta1.AnnotationSidecarSetAborted)
	w.update()
	w.is("Updated")
}

func TestHotUpgradeThatIsNotAbortedIsReported(t *testing.T) {
	t.Parallel()
	completion := v1beta1.HotUpgradeCompletion{
		Type: v1beta1.CompletionAnnotation, Annotation: "ack", TimeoutSeconds: new(int32(30)), TimeoutPolicy: v1beta1.TimeoutWait,
	}
	w := newWorld(t, cold("proxy", "proxy:1", complete(completion)))
	w.image("proxy:2")
	w.update()
	if v := w.judge(); v.Failed {
		t.Errorf("%+v", v)
	}
	w.now = w.now.Add(time.Minute)
	if v := w.judge(); !v.Failed || v.Continue {
		t.Errorf("%+v", v)
	}
}

// An ordinary sidecar that cannot start must not keep the spec that corrects it from being written, because a sidecar that is
// upgraded hot has a new image too.
func TestCorrectedSpecReachesAPodWithAFaultyAndAHotSidecar(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"), cold("proxy", "proxy:1", hot))
	w.faulty["bad"] = true
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image = "bad" })
	w.update()
	w.is("Updated, in flight, failed: container log: no such image")
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image, s.Containers[1].Image = "log:2", "proxy:2" })
	w.update()
	if got := w.pod.Spec.Containers[1].Image; got != "log:2" {
		t.Errorf("image of log: %s", got)
	}
	w.twins("empty:1", "proxy:2", "proxy-2")
	w.is("Updated")
}

// Otherwise the upgrade of the other one, which is broken, would be tried and aborted again.
func TestAbortKeepsTheMarksOfOtherSidecarSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", complete(v1beta1.HotUpgradeCompletion{TimeoutSeconds: new(int32(30))})))
	w.pod.Annotations[v1beta1.AnnotationSidecarSetAborted] = `{"mesh":"hash-of-mesh"}`
	w.faulty["bad"] = true
	w.image("bad")
	w.update()
	w.now = w.now.Add(time.Minute)
	if !w.write(w.target.Step(w.pod, false, w.now)) {
		t.Fatal("not aborted")
	}
	want := `{"logs":"` + w.target.Hashes.Full + `","mesh":"hash-of-mesh"}`
	if got := w.pod.Annotations[v1beta1.AnnotationSidecarSetAborted]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The container with the empty image is ready too. Until kubelet has started the new image in it, it has not taken over: emptying the
// other one would leave the pod without a sidecar that serves.
func TestOldContainerServesUntilKubeletHasStartedTheNewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.image("proxy:2")
	w.write(w.target.Step(w.pod, true, w.now))
	if step, err := w.target.Step(w.pod, false, w.now); step != nil || err != nil || w.judge().Continue {
		t.Fatalf("continued before kubelet has acted: %+v, %v", step, err)
	}
	w.twins("proxy:1", "proxy:2", "proxy-2")
	w.kubelet()
	if !w.write(w.target.Step(w.pod, false, w.now)) {
		t.Error("not continued")
	}
}
