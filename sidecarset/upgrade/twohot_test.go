package upgrade_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
)

// acknowledged is a sidecar that says by an annotation that it has taken over, and has so many seconds for it.
func acknowledged(name, key string, seconds int32, policy v1beta1.HotUpgradeTimeoutPolicy) v1beta1.SidecarContainer {
	return cold(name, name+":1", complete(v1beta1.HotUpgradeCompletion{
		Type: v1beta1.CompletionAnnotation, Annotation: key, TimeoutSeconds: &seconds, TimeoutPolicy: policy,
	}))
}

func (w *world) working(want string) {
	w.t.Helper()
	if got := w.pod.Annotations[v1beta1.AnnotationHotUpgradeWorking]; got != want {
		w.t.Errorf("working: %s, want %s", got, want)
	}
}

func (w *world) images() map[string]string {
	images := map[string]string{}
	for _, c := range w.pod.Spec.Containers {
		images[c.Name] = c.Image
	}
	return images
}

// Each of two sidecars that are upgraded hot takes over by itself.
func TestTheOldContainerOfEachSidecarIsEmptiedWhenItsOwnNewOneHasTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, acknowledged("mesh", "mesh-ack", 600, ""), acknowledged("proxy", "proxy-ack", 600, ""))
	w.working(`{"mesh":"mesh-1","proxy":"proxy-1"}`)
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image, s.Containers[1].Image = "mesh:2", "proxy:2" })
	w.update()
	w.working(`{"mesh":"mesh-2","proxy":"proxy-2"}`)
	w.pod.Annotations["proxy-ack"] = w.pod.Annotations[v1beta1.PrefixSidecarSetVersion+"proxy-2"]
	if !w.write(w.target.Step(w.pod, false, w.now)) {
		t.Fatal("nothing is written")
	}
	if got := w.images(); got["mesh-1"] != "mesh:1" || got["mesh-2"] != "mesh:2" || got["proxy-1"] != "empty:1" || got["proxy-2"] != "proxy:2" {
		t.Errorf("images %v", got)
	}
	w.working(`{"mesh":"mesh-2","proxy":"proxy-2"}`)
	w.kubelet()
	if v := w.judge(); !v.InFlight || v.Continue {
		t.Errorf("%+v", v)
	}
	w.pod.Annotations["mesh-ack"] = w.pod.Annotations[v1beta1.PrefixSidecarSetVersion+"mesh-2"]
	w.write(w.target.Step(w.pod, false, w.now))
	w.kubelet()
	w.is("Updated")
}

// One of two is upgraded alone; the other stays as it is.
func TestOnlyTheSidecarWithAnotherImageIsUpgradedHot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("mesh", "mesh:1", hot), cold("proxy", "proxy:1", hot))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[1].Image = "proxy:2" })
	w.update()
	w.working(`{"mesh":"mesh-1","proxy":"proxy-2"}`)
	if got := w.images(); got["mesh-1"] != "mesh:1" || got["mesh-2"] != "empty:1" || w.restarts["mesh-1"]+w.restarts["mesh-2"] != 0 {
		t.Errorf("images %v, restarts %v", got, w.restarts)
	}
}

// A pod is looked at when the time of the first is over, whichever of them that is: it is reported, or given up.
func TestThePodIsLookedAtAtEachDeadlineOfItsSidecars(t *testing.T) {
	t.Parallel()
	for name, sidecars := range map[string][]v1beta1.SidecarContainer{
		"the first":  {acknowledged("mesh", "mesh-ack", 30, v1beta1.TimeoutWait), acknowledged("proxy", "proxy-ack", 300, v1beta1.TimeoutWait)},
		"the second": {acknowledged("mesh", "mesh-ack", 300, v1beta1.TimeoutWait), acknowledged("proxy", "proxy-ack", 30, v1beta1.TimeoutWait)},
	} {
		w := newWorld(t, sidecars...)
		w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image, s.Containers[1].Image = "mesh:2", "proxy:2" })
		begun := w.now
		w.update()
		for _, step := range []struct {
			after  time.Duration
			failed bool
			again  time.Time
		}{
			{10 * time.Second, false, begun.Add(30 * time.Second)},
			{30 * time.Second, true, begun.Add(300 * time.Second)},
			{300 * time.Second, true, time.Time{}},
		} {
			w.now = begun.Add(step.after)
			if v := w.judge(); v.Failed != step.failed || !v.Again.Equal(step.again) || !v.InFlight {
				t.Errorf("%s, after %s: %s, again at %s; want failed %t, again at %s", name, step.after, v.String(), v.Again, step.failed, step.again)
			}
		}
	}
}

// The empty image is no image of the sidecar: nothing that serves is restarted.
func TestAnotherEmptyImageReachesTheIdleContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = "empty:2" })
	w.forge()
	w.is("Outdated")
	w.update()
	w.twins("proxy:1", "empty:2", "proxy-1")
	w.is("Updated")
	if w.restarts["proxy-1"] != 0 || w.restarts["proxy-2"] != 1 {
		t.Errorf("restarts %v", w.restarts)
	}
}

func TestAHotUpgradeThatAnEarlierVersionHasGivenUpIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("proxy", "proxy:1", hot))
	w.byEarlier()
	written := annotation.Of(w.pod, "logs").Hash
	if written == w.target.Hashes.Full {
		t.Fatal("the hash is the same")
	}
	w.pod.Annotations[v1beta1.AnnotationSidecarSetAborted] = `{"logs":"` + written + `"}`
	w.is("Aborted: the new container of a hot upgrade did not take over in time")
}
