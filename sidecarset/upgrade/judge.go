package upgrade

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/hotupgrade"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// Judge compares a pod with the target. obstacles are the result of [Target.Obstacles], or the reasons why an update
// was refused.
//
// A pod with unreadable parts is not upgradable, whatever else is known about it.
func (t *Target) Judge(pod *corev1.Pod, obstacles []string, now time.Time) Verdict {
	p, err := t.progress(pod, now)
	if err != nil {
		return Verdict{State: rollout.NotUpgradable, Stops: true, Unreadable: true, Message: foreign.Cut(err.Error(), maxMessage)}
	}
	changes := t.compare(p)
	v := Verdict{State: rollout.Updated, InFlight: p.inFlight, Failed: p.failed, Message: p.message, Again: p.again, Continue: p.next != nil || changes.finish, Stops: changes.stop(pod)}
	v.InFlight = v.InFlight || changes.begun
	v.Failed = v.Failed || changes.late
	broken, at := p.brokenBefore()
	v.BrokenBefore, v.Again = broken, v.Again.Or(changes.again.Time, at.Time)
	v.InPlace = p.record != nil
	v.Original = !v.InPlace && !t.hot()
	switch {
	case len(obstacles) > 0:
		v.State, v.Stops, v.Message = rollout.NotUpgradable, true, strings.Join(obstacles, "; ")
	case t.hot() && t.is(aborted(pod, t.SidecarSet)):
		v.State, v.Message = rollout.Aborted, "the new container of a hot upgrade did not take over in time"
	case !t.has(p.injected) || changes.any() || t.abandoned(p):
		v.State = rollout.Outdated
	}
	return v
}

// changes are the differences between a pod and the target.
type changes struct {
	images    map[string]string
	resources map[string]corev1.ResourceRequirements
	hot       []action
	// begun says that a hot upgrade is in progress, finish that the last step of one can be written, and late that a
	// container has not taken over in time.
	begun, finish, late bool
	// busy says that kubelet has not yet emptied the container that the next hot upgrade needs.
	busy  bool
	again recheck.At
}

type action struct {
	sidecar string
	hotupgrade.Action
}

// any reports whether an update is needed, apart from the last steps of hot upgrades.
func (c *changes) any() bool {
	if len(c.images)+len(c.resources) > 0 {
		return true
	}
	for i := range c.hot {
		switch c.hot[i].Kind {
		case hotupgrade.Upgrade, hotupgrade.Retarget, hotupgrade.Return, hotupgrade.Empty:
			return true
		}
	}
	return false
}

// stop reports whether kubelet stops a container when the changes are written. A hot upgrade stops containers too: it
// makes the pod not ready until the idle container, and later the old one, runs again, although no serving container is
// stopped.
func (c *changes) stop(pod *corev1.Pod) bool {
	if len(c.images) > 0 {
		return true
	}
	for i := range c.hot {
		if c.hot[i].Container != "" {
			return true
		}
	}
	for name, resources := range c.resources {
		if plan.RestartsOnResize(&pod.Spec, &plan.Change{Container: name, Resources: &resources}) {
			return true
		}
	}
	return false
}

func (t *Target) compare(p *progress) *changes {
	c := &changes{images: map[string]string{}, resources: map[string]corev1.ResourceRequirements{}}
	for i := range t.sidecars {
		s := &t.sidecars[i]
		if s.hot() {
			t.compareHot(c, p, s)
		} else if container := s.find(&p.pod.Spec, s.Name); container != nil && container.Image != t.image(p.pod, s) {
			c.images[s.Name] = t.image(p.pod, s)
		}
	}
	t.compareResources(c, p)
	return c
}

func (t *Target) compareHot(c *changes, p *progress, s *sidecar) {
	pair, ok := t.pair(p, s)
	if !ok {
		return // this is an obstacle
	}
	next := pair.Next()
	if next.Kind == hotupgrade.Upgrade && p.inFlight && !p.failed && p.next == nil { // else it is a later stage of this upgrade
		// The container must not get an image that it had just before: kubelet compares images, and would not restart
		// it. It would then be mistaken for the container that has taken over, and the serving container would be
		// emptied.
		c.busy = true
		return
	}
	c.begun = c.begun || pair.Begun()
	c.hot = append(c.hot, action{s.Name, next})
	switch next.Kind {
	case hotupgrade.Reset, hotupgrade.Abort:
		c.finish = true
	case hotupgrade.Wait:
		if until, ok := deadline(p, s); ok && p.now.Before(until) {
			c.again = c.again.Or(until)
		} else if ok {
			c.late = true
		}
	}
}

// pair returns the two containers of a sidecar with hot upgrades, and false if the pod does not have them.
func (t *Target) pair(p *progress, s *sidecar) (*hotupgrade.Sidecar, bool) {
	pair := &hotupgrade.Sidecar{
		Name: s.Name, Working: annotation.Working(p.pod)[s.Name], Image: t.image(p.pod, s), Empty: s.UpgradeStrategy.HotUpgradeEmptyImage,
		Version: t.Number,
	}
	for i, name := range hotupgrade.Containers(s.Name) {
		container := s.find(&p.pod.Spec, name)
		if container == nil {
			return nil, false
		}
		pair.Twins[i] = hotupgrade.Twin{Name: name, Image: container.Image, Version: version(p.pod, name), Alt: alternative(p.pod, name)}
	}
	if pair.Begun() {
		pair.TakenOver = !p.inFlight && p.takenOver(s, pair.New())
		until, limited := deadline(p, s)
		pair.TimedOut = limited && !p.now.Before(until) && s.UpgradeStrategy.Completion.TimeoutPolicy != v1beta1.TimeoutWait
	}
	return pair, true
}
