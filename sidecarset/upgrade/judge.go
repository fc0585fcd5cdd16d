package upgrade

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/hotupgrade"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// unclear is how long an update is waited for although all sidecars are ready and kubelet has seen the change. The runtime
// does not always tell whether a container runs the new image, as when two tags are one digest.
const unclear = time.Minute

// Judge compares a pod with the target. Obstacles are those of [Target.Obstacles], or why an update was refused.
//
// A pod with something that is not readable is not upgradable, whatever else is said of it.
func (t *Target) Judge(pod *corev1.Pod, obstacles []string, now time.Time) Verdict {
	if err := t.readable(pod); err != nil {
		return Verdict{State: rollout.NotUpgradable, Stops: true, Unreadable: true, Message: foreign.Cut(err.Error(), maxMessage)}
	}
	p := t.progress(pod, now)
	changes := t.compare(p)
	v := Verdict{State: rollout.Updated, InFlight: p.inFlight, Failed: p.failed, Message: p.message, Again: p.again, Continue: p.step || changes.finish, Stops: changes.stop(pod)}
	v.InFlight = v.InFlight || changes.begun
	v.Failed = v.Failed || changes.late
	broken, at := p.brokenBefore()
	v.BrokenBefore, v.Again = broken, rollout.Earliest(rollout.Earliest(v.Again, changes.again), at)
	v.Original = p.record == nil && !t.hot()
	injected := annotation.Of(pod, t.SidecarSet)
	switch {
	case len(obstacles) > 0:
		v.State, v.Stops, v.Message = rollout.NotUpgradable, true, strings.Join(obstacles, "; ")
	case t.hot() && aborted(pod, t.SidecarSet) == t.Hashes.Full:
		v.State, v.Message = rollout.Aborted, "the new container of a hot upgrade did not take over in time"
	case injected == nil || injected.Hash != t.Hashes.Full || changes.any():
		v.State = rollout.Outdated
	}
	return v
}

// progress is how far the update that was begun last has come.
type progress struct {
	pod      *corev1.Pod
	record   *record.Record
	now      time.Time
	inFlight bool
	failed   bool
	step     bool // the next stage of this target can be written
	message  string
	again    time.Time
}

func (t *Target) progress(pod *corev1.Pod, now time.Time) *progress {
	p := &progress{pod: pod, now: now}
	recorded, err := record.ReadSidecars(pod, t.SidecarSet)
	if err != nil || recorded == nil {
		return p
	}
	p.record = recorded
	known, err := facts.Read(pod)
	if err != nil {
		known = nil
	}
	decision := inplace.Next(pod, recorded, known, now)
	switch decision.Kind {
	case inplace.KindDone:
		return p
	case inplace.KindStep:
		p.inFlight, p.step = true, recorded.State.Revision == t.Hashes.Full
	case inplace.KindBlocked:
		p.inFlight, p.failed = true, true
	case inplace.KindWait:
		until := recorded.State.UpdateTimestamp.Add(unclear)
		if until.After(now.Add(unclear + clockSkew)) {
			until = time.Time{} // whoever may annotate the pod writes any time
		}
		if !now.Before(until) && t.running(pod) {
			return p
		}
		p.inFlight, p.again = true, until
	}
	p.message = decision.Message
	if !decision.Again.IsZero() {
		p.again = decision.Again
	}
	if !now.Before(p.again) {
		p.again = time.Time{}
	}
	return p
}

// running reports whether all containers of the SidecarSet are ready and kubelet has seen the pod as it is.
func (t *Target) running(pod *corev1.Pod) bool {
	if pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation {
		return false
	}
	for i := range t.sidecars {
		for _, name := range t.sidecars[i].containers() {
			if !ready(pod, name) {
				return false
			}
		}
	}
	return true
}

func ready(pod *corev1.Pod, container string) bool {
	status := kubelet.StatusOf(pod, container)
	return status != nil && status.Ready && status.State.Running != nil
}

// changes are what is different between a pod and the target.
type changes struct {
	images    map[string]string
	resources map[string]corev1.ResourceRequirements
	hot       []action
	// begun: a hot upgrade is under way. Finish: the last step of one can be written. Late: one has not taken over in time.
	begun, finish, late bool
	// busy: kubelet has not emptied the container yet that the next hot upgrade needs.
	busy  bool
	again time.Time
}

type action struct {
	sidecar string
	hotupgrade.Action
}

// any reports whether an update is needed, beside the last steps of hot upgrades.
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

// stop reports whether kubelet stops a container when they are written. A hot upgrade does too: that of the idle container, and later of
// the old one, makes the pod not ready until they run again, although nothing that serves is stopped.
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
	t.compareResources(c, p.pod)
	return c
}

func (t *Target) compareHot(c *changes, p *progress, s *sidecar) {
	pair, ok := t.pair(p, s)
	if !ok {
		return // an obstacle
	}
	next := pair.Next()
	if next.Kind == hotupgrade.Upgrade && p.inFlight && !p.failed {
		// An image that the container had before would leave it as it is: kubelet compares images. It would be taken for the
		// one that has taken over, and the one that serves would be emptied.
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
			c.again = until
		} else if ok {
			c.late = true
		}
	}
}

// pair is the two containers of a sidecar that is upgraded hot; false if the pod does not have them.
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

// quantities are compared as resources, since "1" and "1000m" are equal.
func (t *Target) compareResources(c *changes, pod *corev1.Pod) {
	injected := annotation.Of(pod, t.SidecarSet)
	if injected == nil || injected.Hash == t.Hashes.Full {
		return // what others have changed since, as an autoscaler, is theirs
	}
	before := t.history.of(injected)
	if before == nil {
		return
	}
	for i := range t.sidecars {
		s := &t.sidecars[i]
		was := sidecarNamed(before, s.Name)
		if was == nil || t.ownResources(pod, s) || len(differing(fields(was.Resources), fields(s.Resources))) == 0 {
			continue
		}
		for _, name := range s.containers() {
			container := s.find(&pod.Spec, name)
			if container == nil {
				continue
			}
			wanted := corev1.ResourceRequirements{
				Requests: changed(container.Resources.Requests, was.Resources.Requests, s.Resources.Requests),
				Limits:   changed(container.Resources.Limits, was.Resources.Limits, s.Resources.Limits),
			}
			if !same(container.Resources.Requests, wanted.Requests) || !same(container.Resources.Limits, wanted.Limits) {
				c.resources[name] = wanted
			}
		}
	}
}

// changed is a list with the difference between two others.
func changed(has, was, is corev1.ResourceList) corev1.ResourceList {
	list := has.DeepCopy()
	for name := range was {
		if _, ok := is[name]; !ok {
			delete(list, name)
		}
	}
	for name, quantity := range is {
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = quantity
	}
	return list
}

func same(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		other, ok := b[name]
		if !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
