package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

func TestImageOfOneContainerIsChangedAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.gated(s.podOf("web", shell("app", obedient), shell("other", obedient)))
	said := s.updates("image", "pod/web", "app="+newImage, "--drain-seconds=1")
	after := s.restarted(before, "app", 1)
	s.untouched(before, "other")
	s.same(before)
	if !podReady(after) {
		t.Error("the pod is not ready at the end")
	}
	if got := s.exec("web", "app", "cat /etc/image-tag"); strings.TrimSpace(got) != "1.35" {
		t.Errorf("the container runs image %q", got)
	}
	runs, err := s.runtime(after).ContainerStatus(t.Context(), instance(t, after, "app"))
	s.check(err, "ask the runtime")
	want := kubelet.ContainerHash(&after.Spec.Containers[0])
	if runs.Hash != want {
		t.Errorf("kubelet's hash is %s, ours %s", runs.Hash, want)
	}
	s.observed("hash annotation %s as computed; said:\n%s", runs.Hash, said)
}

// Tags of one digest: the runtime reports any of them.
func TestSameDigestUnderAnotherTagReplacesTheContainer(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const retagged = "docker.io/library/busybox:same-as-1.36"
	before := s.start(on(s.nodes[0], s.podOf("web", shell("app", obedient))))
	s.ctr(s.nodes[0], "images", "tag", "--force", image, retagged)
	s.setImage("web", "app="+retagged)
	after := s.replaced(before, "app")
	is, was := status(after, "app"), status(before, "app")
	s.observed("spec %s, status.image %s, imageID the same: %v", retagged, is.Image, is.ImageID == was.ImageID)
	if is.ImageID != was.ImageID {
		t.Errorf("imageID %s, want %s still", is.ImageID, was.ImageID)
	}
}

// What kubelet does when the image cannot be pulled: the old container is gone by then.
func TestMissingImageIsFoundAfterTheOldContainerIsStopped(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			pod := s.podOf("web", shell("app", obedient))
			pod.Spec.RestartPolicy = policy
			before := s.start(pod)
			s.setImage("web", "app="+missingImage)
			after := s.awaitPod("web", "to lose its container", func(pod *corev1.Pod) bool {
				app := status(pod, "app")
				return app.State.Running == nil && (app.State.Waiting != nil && strings.Contains(app.State.Waiting.Reason, "Image") || ended(pod))
			})
			runs, err := s.runtime(before).ContainerStatus(t.Context(), instance(t, before, "app"))
			if err == nil && runs.FinishedAt.IsZero() {
				t.Error("the old instance still runs")
			}
			s.observed("policy %s: phase %s, state %+v", policy, after.Status.Phase, status(after, "app").State)
		})
	}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// The tool tells of a missing image, and the right one leads out of it.
func TestMissingImageIsReportedAndTheRightOneRepairsIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient), shell("other", obedient)))
	out, code := s.set("image", "pod/web", "app="+missingImage, "--no-pull", "--timeout=20s")
	if code != 124 || !containsAny(out, "ErrImagePull", "ImagePullBackOff") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	s.updates("image", "pod/web", "app="+newImage)
	s.untouched(before, "other")
	s.same(before)
}

func TestImageOfANativeSidecarRestartsOnlyTheSidecar(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	mesh := shell("mesh", obedient)
	mesh.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	pod.Spec.InitContainers = []corev1.Container{shell("setup", "exit 0"), mesh}
	before := s.start(pod)
	s.updates("image", "pod/web", "mesh="+newImage)
	s.restarted(before, "mesh", 1)
	s.untouched(before, "app")
	out, code := s.set("image", "pod/web", "setup="+newImage)
	if code != 2 || !strings.Contains(out, "runs once") {
		t.Errorf("an init container that has run: exit code %d:\n%s", code, out)
	}
	now := s.pod("web")
	s.setImage("web", "setup="+newImage)
	s.awaitPod("web", "to be seen by kubelet", func(pod *corev1.Pod) bool { return pod.Status.ObservedGeneration >= pod.Generation })
	s.untouched(now, "setup")
	s.untouched(now, "app")
	s.observed("the API server takes the image of an init container that has run, and kubelet does nothing about it")
}

// That kubelet has seen the spec does not say that its status is of the outcome.
func TestObservedGenerationComesBeforeTheNewContainer(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.brief(s.podOf("web", shell("app", stubborn))))
	changes, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	s.check(err, "watch")
	defer changes.Stop()
	began := time.Now()
	s.setImage("web", "app="+newImage)
	was := status(before, "app").ContainerID
	var early time.Duration
	for event := range changes.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			t.Fatalf("watch: %s", event.Type)
		}
		app := status(pod, "app")
		if pod.Generation > before.Generation && pod.Status.ObservedGeneration >= pod.Generation && app.ContainerID == was && early == 0 {
			early = time.Since(began)
			s.observed("observedGeneration %d of %d after %s, while the status still is of the old instance, state %+v",
				pod.Status.ObservedGeneration, pod.Generation, early.Round(time.Millisecond), app.State)
		}
		if app.ContainerID != was && app.State.Running != nil {
			s.observed("new instance after %s; an early observedGeneration was seen: %v", time.Since(began).Round(time.Millisecond), early > 0)
			return
		}
	}
}

// Ready follows the gate when kubelet has seen it; whoever writes both has them at once, and they stay.
func TestDrainThroughTheReadinessGate(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.gated(s.podOf("web", shell("app", obedient)))
	for _, to := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		began := time.Now()
		s.gate("web", to)
		s.awaitPod("web", "to follow its gate", func(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == to })
		s.observed("kubelet writes Ready=%s %s after the gate (looked at every %s)", to, time.Since(began).Round(time.Millisecond), pollInterval)
	}
	for _, to := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		began := time.Now()
		s.gate("web", to, corev1.PodReady)
		var flips []string
		is := to
		// Twice as long as kubelet's status manager takes to look at everything again.
		err := until(t.Context(), 20*time.Second, func(ctx context.Context) (bool, error) {
			pod := &corev1.Pod{}
			err := s.Get(ctx, s.key("web"), pod)
			if now := condition(pod, corev1.PodReady); err == nil && now != is {
				is = now
				flips = append(flips, string(now)+" after "+time.Since(began).Round(100*time.Millisecond).String())
			}
			return false, err
		})
		s.observed("gate and Ready written %s at once: Ready then becomes %q (%v)", to, flips, err)
		if is != to {
			t.Errorf("Ready is %s at last, want %s", is, to)
		}
	}
}

func TestUpdateResumesAfterKubeletWasDown(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	node := s.nodes[0]
	before := s.start(on(node, s.podOf("web", shell("app", obedient), shell("other", obedient))))
	s.component(t, nil, "stop", "kubelet", node)
	s.setImage("web", "app="+newImage)
	s.component(t, nil, "start", "kubelet", node)
	s.await("kubelet", s.kubeletAnswers(node))
	s.replaced(before, "app")
	// Killed while the container stops.
	slow := s.start(on(node, s.brief(s.podOf("slow", shell("app", stubborn)))))
	s.setImage("slow", "app="+newImage)
	s.await("TERM", s.says("slow", "app", "TERM"))
	s.component(t, nil, "kill", "kubelet", node)
	s.await("kubelet", s.kubeletAnswers(node))
	s.replaced(slow, "app")
	s.restarted(before, "app", 1)
	s.restarted(slow, "app", 1)
	s.untouched(before, "other")
	s.observed("one restart each, with kubelet down when the spec changed, and killed between TERM and KILL")
}

func TestAgentAndKubeletStopOneContainerOnce(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	slowly := `trap 'echo TERM >>/shared/signals; sleep 2; exit 0' TERM; while :; do sleep 0.1; done`
	before := s.start(s.podOf("web", shell("app", slowly), shell("other", obedient)))
	s.setImage("web", "app="+newImage)
	s.stop(before, "app")
	s.replaced(before, "app")
	s.restarted(before, "app", 1)
	if got := s.exec("web", "other", "cat /shared/signals"); strings.Count(got, "TERM") != 1 {
		t.Errorf("signals %q, want one TERM", got)
	}
	s.observed("one TERM and one restart, with kubelet and another program stopping the container at once")
}

// Both ends of the record: what OpenKruise reads is there, and a second command follows the first.
func TestRecordOnThePodSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("web", shell("app", obedient)))
	s.updates("image", "pod/web", "app="+newImage)
	if state := s.pod("web").Annotations[v1beta1.AnnotationInPlaceUpdateState]; !strings.Contains(state, `"lastContainerStatuses":{"app":{"imageID":`) {
		t.Errorf("state %q", state)
	}
	if out, code := s.set("image", "pod/web", "app="+newImage); code != 0 || !strings.Contains(out, "unchanged") {
		t.Errorf("the same again: exit code %d: %s", code, out)
	}
}
