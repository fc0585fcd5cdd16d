package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestSidecarSetTakesOverPodsOfOpenKruiseAndUpdatesThemInPlace(t *testing.T) {
	t.Parallel()
	const n = 4
	s := newSidecarSet(t, n)
	s.reaches("to count the pods as updated", completed(n))
	before := s.all(n)
	for _, pod := range before {
		if status(pod, "log").RestartCount != 0 {
			t.Errorf("the sidecar of %s was restarted", pod.Name)
		}
	}
	s.changes(`{"spec":{"updateStrategy":{"partition":2,"maxUnavailable":2}}}`)
	s.setsImage(newImage)
	s.reaches("to stop at the partition", func(status *v1beta1.SidecarSetStatus) bool {
		return status.UpdatedReadyPods == 2 && reason(status, v1beta1.ConditionProgressing) == "Partition"
	})
	if got := s.images(n); got[newImage] != 2 {
		t.Errorf("images %v", got)
	}
	s.changes(`{"spec":{"updateStrategy":{"partition":0,"paused":true}}}`)
	s.reaches("to pause", func(status *v1beta1.SidecarSetStatus) bool {
		return reason(status, v1beta1.ConditionProgressing) == "Paused"
	})
	if got := s.images(n); got[newImage] != 2 {
		t.Errorf("images %v while paused", got)
	}
	s.changes(`{"spec":{"updateStrategy":{"paused":false}}}`)
	s.reaches("to be completed", completed(n))
	for i, pod := range s.all(n) {
		s.same(before[i])
		if status(pod, "app").ContainerID != status(before[i], "app").ContainerID {
			t.Errorf("the application of %s was restarted", pod.Name)
		}
		if c := status(pod, "log"); c.RestartCount != 1 {
			t.Errorf("the sidecar of %s was restarted %d times", pod.Name, c.RestartCount)
		}
	}
	if out := s.run("get", "controllerrevisions", "--namespace", systemNamespace, "--selector", v1beta1.LabelSidecarSetName+"="+s.name, "--output=name"); len(strings.Fields(out)) != 2 {
		t.Errorf("revisions %s", out)
	}
	s.setsImage(image)
	s.reaches("to be rolled back", completed(n))
	if got := s.images(n); got[image] != n {
		t.Errorf("images %v after the rollback", got)
	}
}

func TestFaultySidecarImageStopsOnePodAndIsRepaired(t *testing.T) {
	t.Parallel()
	const n = 3
	s := newSidecarSet(t, n)
	s.reaches("to count the pods as updated", completed(n))
	s.setsImage(missingImage)
	s.reaches("to report the failure", func(status *v1beta1.SidecarSetStatus) bool {
		return status.FailedPods == 1 && reason(status, v1beta1.ConditionDegraded) == "UpdateFailed"
	})
	if got := s.images(n); got[missingImage] != 1 {
		t.Errorf("images %v, with maxUnavailable 1", got)
	}
	s.setsImage(newImage)
	s.reaches("to be repaired", completed(n))
	if got := s.images(n); got[newImage] != n {
		t.Errorf("images %v", got)
	}
}

func TestSidecarsThatCannotBeUpdatedInPlaceSaySo(t *testing.T) {
	t.Parallel()
	s := newSidecarSet(t, 1)
	s.reaches("to count the pod as updated", completed(1))
	s.edits(func(spec *v1beta1.SidecarSetSpec) {
		spec.Containers[0].Image, spec.Containers[0].Env = newImage, []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	set := s.reaches("to say so", func(status *v1beta1.SidecarSetStatus) bool {
		return status.NotUpgradablePods == 1 && reason(status, v1beta1.ConditionDegraded) == "NotUpgradable"
	})
	if c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionDegraded); !strings.Contains(c.Message, "env") {
		t.Errorf("message %q", c.Message)
	}
	s.awaitPod("web-0", "to have the condition", func(pod *corev1.Pod) bool {
		return condition(pod, v1beta1.ConditionSidecarSetUpgradable) == corev1.ConditionFalse
	})
	if got := s.images(1); got[image] != 1 {
		t.Errorf("images %v", got)
	}
}

func TestSidecarIsResizedInPlace(t *testing.T) {
	t.Parallel()
	cpu := func(to string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(to)}}
	}
	s := newSidecarSet(t, 1, func(spec *v1beta1.SidecarSetSpec) { spec.Containers[0].Resources = cpu("10m") })
	s.reaches("to count the pod as updated", completed(1))
	s.edits(func(spec *v1beta1.SidecarSetSpec) { spec.Containers[0].Resources = cpu("20m") })
	s.reaches("to be completed", completed(1))
	pod := s.pod("web-0")
	allocated := status(pod, "log").AllocatedResources
	if got := allocated.Cpu().String(); got != "20m" || status(pod, "log").RestartCount != 0 {
		t.Errorf("CPU %s, restarts %d", got, status(pod, "log").RestartCount)
	}
}

func TestSidecarIsUpgradedHotAndRolledBack(t *testing.T) {
	t.Parallel()
	s := newSidecarSet(t, 1, func(spec *v1beta1.SidecarSetSpec) {
		spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(1))
		// The empty image is the same program under another name of the registry.
		spec.Containers[0].UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.HotUpgrade, HotUpgradeEmptyImage: "busybox:1.36"}
	})
	images := func(pod *corev1.Pod) string { return pod.Spec.Containers[0].Image + " " + pod.Spec.Containers[1].Image }
	s.reaches("to count the pod as updated", completed(1))
	s.setsImage(newImage)
	s.reaches("to be completed", completed(1))
	pod := s.pod("web-0")
	if images(pod) != "busybox:1.36 "+newImage || pod.Annotations[v1beta1.AnnotationHotUpgradeWorking] != `{"log":"log-2"}` {
		t.Errorf("images %s, working %s", images(pod), pod.Annotations[v1beta1.AnnotationHotUpgradeWorking])
	}
	// Defect 1 of the peer: a broken upgrade can only be healed by a third image.
	s.setsImage(missingImage)
	s.reaches("to report the failure", func(status *v1beta1.SidecarSetStatus) bool { return status.FailedPods == 1 })
	s.setsImage(newImage)
	s.reaches("to be rolled back", completed(1))
	after := s.pod("web-0")
	if images(after) != "busybox:1.36 "+newImage || status(after, "log-2").ContainerID != status(pod, "log-2").ContainerID {
		t.Errorf("images %s; the container that worked was replaced: %v", images(after), status(after, "log-2").ContainerID != status(pod, "log-2").ContainerID)
	}
	s.same(pod)
}
