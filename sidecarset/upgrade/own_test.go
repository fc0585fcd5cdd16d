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
		w.write(w.target.Begin(w.pod, w.now))
		for _, c := range slices.Concat(w.pod.Spec.Containers, w.pod.Spec.InitContainers) {
			if c.Image == "new:2" {
				t.Errorf("%q: the image of container %s has been changed", policy, c.Name)
			}
		}
	}
}
