package hotupgrade_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/hotupgrade"
)

const empty = "empty:1"

// world is a sidecar of a pod, whose containers run the images that are good.
type world struct {
	t       *testing.T
	sidecar hotupgrade.Sidecar
	faulty  map[string]bool // images that never take over
	serving string          // the container that has the traffic
	actions []hotupgrade.Kind
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, faulty: map[string]bool{}, serving: "x-1", sidecar: hotupgrade.Sidecar{
		Name: "x", Working: "x-1", Image: "v1", Empty: empty, Version: 100,
		Twins: [2]hotupgrade.Twin{{Name: "x-1", Image: "v1", Version: "1", Alt: "0"}, {Name: "x-2", Image: empty, Version: "0", Alt: "1"}},
	}}
}

// act carries one decision out, and lets the new container take over if it can.
func (w *world) act() hotupgrade.Kind {
	w.t.Helper()
	s := &w.sidecar
	newest := w.twin(s.New())
	s.TakenOver = s.Begun() && !w.faulty[newest.Image]
	if s.TakenOver {
		w.serving = newest.Name
	}
	action := s.Next()
	w.actions = append(w.actions, action.Kind)
	if action.Container != "" {
		if action.Container == w.serving {
			w.t.Errorf("%s: container %s, which serves, is stopped; before: %v", action.Kind, action.Container, w.actions)
		}
		w.twin(action.Container).Image = action.Image
	}
	s.Working = action.Working
	for i := range s.Twins {
		twin := &s.Twins[i]
		if version, ok := action.Annotations[v1beta1.PrefixSidecarSetVersion+twin.Name]; ok {
			twin.Version = version
		}
		if alt, ok := action.Annotations[v1beta1.PrefixSidecarSetVersionAlt+twin.Name]; ok {
			twin.Alt = alt
		}
	}
	s.TimedOut = false
	return action.Kind
}

func (w *world) twin(name string) *hotupgrade.Twin {
	for i := range w.sidecar.Twins {
		if w.sidecar.Twins[i].Name == name {
			return &w.sidecar.Twins[i]
		}
	}
	w.t.Fatalf("no container %q", name)
	return nil
}

func (w *world) settle() {
	w.t.Helper()
	for range 6 {
		if w.act() == hotupgrade.Settled {
			return
		}
	}
	w.t.Fatalf("does not settle: %v, %+v", w.actions, w.sidecar)
}

// is checks images and versions of both containers.
func (w *world) is(first, second, working string) {
	w.t.Helper()
	s := w.sidecar
	if s.Twins[0].Image != first || s.Twins[1].Image != second || s.Working != working {
		w.t.Errorf("images %s and %s, working %s; want %s, %s, %s; actions %v", s.Twins[0].Image, s.Twins[1].Image, s.Working, first, second, working, w.actions)
	}
	for _, twin := range s.Twins {
		if works := twin.Name == working; works == (twin.Version == "0") || works != (twin.Alt == "0") {
			w.t.Errorf("versions %+v", s.Twins)
		}
	}
}

func TestUpgradeAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sidecar.Image = "v2"
	if kind := w.act(); kind != hotupgrade.Upgrade {
		t.Fatal(kind)
	}
	// The annotations for the containers: the new one has the higher number.
	if s := w.sidecar.Twins; s[1].Version != "100" || s[1].Alt != "1" || s[0].Version != "1" || s[0].Alt != "100" {
		t.Errorf("versions %+v", s)
	}
	w.settle()
	w.is(empty, "v2", "x-2")
	w.sidecar.Image = "v1"
	w.settle()
	w.is("v1", empty, "x-1")
}

// Defect 1 of the peer: x-1=v1 works, x-2=v2 is broken, and setting the spec back to v1 does nothing; only a third image
// heals.
func TestRollbackRepairsABrokenUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faulty["v2"] = true
	w.sidecar.Image = "v2"
	w.act()
	if kind := w.act(); kind != hotupgrade.Wait {
		t.Errorf("%s instead of waiting for the broken container", kind)
	}
	w.sidecar.Image = "v1"
	w.settle()
	w.is("v1", empty, "x-1")
}

func TestAThirdImageReplacesTheBrokenOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faulty["v2"] = true
	w.sidecar.Image = "v2"
	w.act()
	w.sidecar.Image = "v3"
	if kind := w.act(); kind != hotupgrade.Retarget {
		t.Fatal(kind)
	}
	// Both get a version above the failed one.
	if s := w.sidecar.Twins; s[1].Version != "101" || s[1].Alt != "1" || s[0].Version != "1" || s[0].Alt != "101" {
		t.Errorf("versions %+v", s)
	}
	w.settle()
	w.is(empty, "v3", "x-2")
}

// An image that was changed when the time of the one before is over is tried, and one that has taken over at the last moment is kept.
func TestOnlyTheWantedImageIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		image     string // that is wanted now
		takenOver bool
		want      hotupgrade.Kind
	}{
		"the same":                       {"v2", false, hotupgrade.Abort},
		"it has taken over":              {"v2", true, hotupgrade.Reset},
		"another":                        {"v3", false, hotupgrade.Retarget},
		"the one before":                 {"v1", false, hotupgrade.Return},
		"another, and it has taken over": {"v3", true, hotupgrade.Reset},
	} {
		w := newWorld(t)
		w.sidecar.Image = "v2"
		w.act()
		w.sidecar.Image, w.sidecar.TimedOut, w.sidecar.TakenOver = tc.image, true, tc.takenOver
		if got := w.sidecar.Next().Kind; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestTimeOutGoesBackToTheOldContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faulty["v2"] = true
	w.sidecar.Image = "v2"
	w.act()
	w.sidecar.TimedOut = true
	if kind := w.act(); kind != hotupgrade.Abort {
		t.Fatal(kind)
	}
	w.is("v1", empty, "x-1")
}

func TestEmptyImageIsReplacedInTheIdleContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sidecar.Empty = "empty:2"
	w.settle()
	w.is("v1", "empty:2", "x-1")
	w.sidecar.Empty, w.sidecar.Image = "empty:3", "v2"
	w.settle()
	w.is("empty:3", "v2", "x-2")
}

func TestLostAnnotationsAreFoundAgain(t *testing.T) {
	t.Parallel()
	for _, working := range []string{"", "other", "x-2"} {
		w := newWorld(t)
		w.sidecar.Working = working
		w.sidecar.Image = "v2"
		w.settle()
		w.is(empty, "v2", "x-2")
	}
	for _, absurd := range []string{"99999999999999999999", "9000000000000000000"} {
		w := newWorld(t)
		w.sidecar.Twins[0].Version = absurd
		w.sidecar.Image = "v2"
		w.act()
		if got := w.sidecar.Twins[1].Version; got != "100" {
			t.Errorf("version %s after %s", got, absurd)
		}
	}
}

// Whatever is asked for in whatever order, the serving container is never stopped, versions grow, and with a good image
// it settles.
func TestAnyOrderOfImagesSettles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, random := newWorld(t), rand.New(rand.NewPCG(seed, 1))
			w.faulty["bad1"], w.faulty["bad2"] = true, true
			for range random.IntN(12) {
				w.sidecar.Image = []string{"v1", "v2", "v3", "bad1", "bad2"}[random.IntN(5)]
				w.sidecar.TimedOut = random.IntN(4) == 0
				for range random.IntN(4) {
					w.act()
				}
			}
			good := []string{"v1", "v2", "v4"}[random.IntN(3)]
			w.sidecar.Image, w.sidecar.TimedOut = good, false
			w.settle()
			if w.twin(w.sidecar.Working).Image != good || w.serving != w.sidecar.Working {
				t.Errorf("%+v, serving %s", w.sidecar, w.serving)
			}
		})
	}
}
