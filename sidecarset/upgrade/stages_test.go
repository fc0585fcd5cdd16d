package upgrade_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// A hot upgrade whose resources change as well has several stages. The container that serves goes on until the other one has taken over.
func TestAHotUpgradeWithOtherResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot, requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "proxy:2", cpu("200m")
	})
	w.write(w.target.Step(w.pod, true, w.now))
	for w.pod.Spec.Containers[2].Image != "proxy:2" { // the record, the resizes, the image
		w.now = w.now.Add(time.Second)
		w.kubelet()
		if !w.write(w.target.Step(w.pod, false, w.now)) {
			t.Fatal(w.verdict())
		}
	}
	w.twins("proxy:1", "proxy:2", "proxy-2")
	if step, err := w.target.Step(w.pod, true, w.now); step != nil || err != nil {
		t.Errorf("before the new container runs: %+v, %v", step, err)
	}
	w.kubelet()
	w.update()
	w.twins("empty:1", "proxy:2", "proxy-2")
	w.is("Updated")
}

// The spec is set back, or changed to a third one, after the resources of a pod were changed and before its image was.
func TestASpecThatChangesBetweenTheStages(t *testing.T) {
	t.Parallel()
	for _, image := range []string{"log:1", "log:3"} {
		w := twoStages(t)
		w.spec(func(s *v1beta1.SidecarSetSpec) {
			s.Containers[0].Image, s.Containers[0].Resources = image, cpu("100m")
		})
		for range 8 {
			w.write(w.target.Step(w.pod, true, w.now))
			w.now = w.now.Add(time.Second)
			w.kubelet()
		}
		w.resources("log", "100m", "0")
		w.is("Updated")
		if got := w.pod.Spec.Containers[1].Image; got != image {
			t.Errorf("image %s, want %s", got, image)
		}
	}
}
