package upgrade_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// own makes the container of the sidecar one that the pod has of its own.
func (w *world) own(name string) {
	for _, list := range [][]corev1.Container{w.pod.Spec.Containers, w.pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				list[i].Env = nil
			}
		}
	}
}

func TestContainerOfTheApplicationIsNeverChanged(t *testing.T) {
	t.Parallel()
	for policy, obstacle := range map[v1beta1.ConflictPolicy]bool{"": true, v1beta1.ConflictFail: true, v1beta1.ConflictKeepPod: false} {
		w := newWorld(t, cold("log", "log:1", func(c *v1beta1.SidecarContainer) { c.Command = []string{"log"} }), cold("proxy", "proxy:1", native))
		w.own("log")
		w.own("proxy")
		w.spec(func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.ConflictPolicy = policy })
		w.image("new:2")
		obstacles := w.target.Obstacles(w.pod)
		if found := slices.ContainsFunc(obstacles, func(o string) bool { return strings.Contains(o, "container log of the pod has not been injected") }); found != obstacle {
			t.Errorf("%q: obstacles %q", policy, obstacles)
		}
		if v := w.target.Judge(w.pod, obstacles, w.now); obstacle && v.State != rollout.NotUpgradable {
			t.Errorf("%q: %+v", policy, v)
		}
		w.write(w.target.Step(w.pod, true, w.now))
		for _, c := range slices.Concat(w.pod.Spec.Containers, w.pod.Spec.InitContainers) {
			if c.Image == "new:2" {
				t.Errorf("%q: the image of container %s has been changed", policy, c.Name)
			}
		}
	}
}

func TestPodMayHaveItsOwnImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.pod.Annotations[v1beta1.PrefixSidecarImage+"log"] = "log:debug"
	w.is("Updated") // not allowed
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.InjectionStrategy.AllowedPodOverrides = []v1beta1.PodOverride{v1beta1.OverrideImage}
	})
	w.update()
	if image := w.pod.Spec.Containers[1].Image; image != "log:debug" {
		t.Error(image)
	}
	w.is("Updated")
	w.pod.Annotations[v1beta1.PrefixSidecarImage+"log"] = ""
	w.is("Outdated")
	w.update()
	if image := w.pod.Spec.Containers[1].Image; image != "log:1" {
		t.Errorf("without an image of its own: %s", image)
	}
}

// The hash of the SidecarSet is the same all the time.
func TestPodMayHaveItsOwnImageOfASidecarThatIsUpgradedHot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.InjectionStrategy.AllowedPodOverrides = []v1beta1.PodOverride{v1beta1.OverrideImage}
	})
	ask := func(image string) { w.pod.Annotations[v1beta1.PrefixSidecarImage+"proxy"] = image }
	w.is("Updated")
	ask("proxy:debug")
	w.is("Outdated")
	w.update()
	w.twins("empty:1", "proxy:debug", "proxy-2")
	w.faulty["bad"] = true
	ask("bad")
	w.update()
	w.is("Updated, in flight, failed: container proxy-1: no such image")
	ask("proxy:3")
	w.is("Outdated, in flight, failed: container proxy-1: no such image")
	w.update()
	w.twins("proxy:3", "empty:1", "proxy-1")
	ask("bad")
	w.update()
	ask("proxy:3")
	w.is("Outdated, in flight, failed: container proxy-2: no such image")
	w.update()
	w.twins("proxy:3", "empty:1", "proxy-1")
	w.is("Updated")
}
