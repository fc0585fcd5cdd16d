package upgrade

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/sidecarset/annotation"
)

const (
	// unclearTimeout is how long to wait for an update although all sidecars are ready and kubelet has observed the change.
	// The runtime does not always show whether a container runs the new image, for example if two tags have one digest.
	unclearTimeout = time.Minute
	// notReplacedTimeout is how long to wait if a container is still the one that the update replaces, as while kubelet is not running:
	// it replaces a container for every other name of an image. The record is in an annotation, so the time is limited.
	notReplacedTimeout = 10 * time.Minute
)

// progress is the progress of the last update of a pod.
type progress struct {
	pod      *corev1.Pod
	injected *annotation.Injected
	record   *record.Record
	now      time.Time
	inFlight bool
	failed   bool
	next     *inplace.Step // of the update to this target; nil if there is none that can be written
	message  string
	again    recheck.At
}

// progress reads the parts of the pod that an update depends on. It returns an error if one of them is unreadable.
func (t *Target) progress(pod *corev1.Pod, now time.Time) (*progress, error) {
	recorded, err := record.ReadSidecars(pod, t.SidecarSet)
	if err := errors.Join(foreign.Pod(pod), err); err != nil {
		return nil, err
	}
	p := &progress{pod: pod, now: now, record: recorded, injected: annotation.Of(pod, t.SidecarSet)}
	if recorded != nil {
		known, err := reported.Read(pod)
		if err != nil {
			known = nil // as if no daemon reported container state
		}
		t.decide(p, inplace.Next(pod, recorded, known, now))
	}
	return p, nil
}

// decide adds the decision about the last update.
func (t *Target) decide(p *progress, decision inplace.Decision) {
	switch decision.Kind {
	case inplace.KindDone:
		return
	case inplace.KindStep:
		p.inFlight = true
		if t.is(p.record.State.Revision) {
			p.next = decision.Step
		}
	case inplace.KindBlocked:
		p.inFlight, p.failed = true, true
	case inplace.KindWait:
		timeout := unclearTimeout
		if p.notReplaced() {
			timeout = notReplacedTimeout
		}
		until := p.record.State.UpdateTimestamp.Add(timeout)
		if until.After(p.now.Add(timeout + clockSkew)) {
			until = time.Time{} // the time is not trusted: users who may annotate the pod can write it
		}
		if !p.now.Before(until) && t.running(p.pod) {
			return
		}
		p.inFlight, p.again = true, recheck.On(until)
	}
	p.message = decision.Message
	if p.again.Passed(p.now) {
		p.again = recheck.At{}
	}
	if p.now.Before(decision.Again) {
		p.again = p.again.Or(decision.Again)
	}
}

// abandoned reports whether an update to another version of the SidecarSet was begun and has stages that will not come: the pod may have the
// resources of that version.
func (t *Target) abandoned(p *progress) bool {
	return p.record != nil && p.record.Pending() && !t.is(p.record.State.Revision)
}

// notReplaced reports whether a container whose image the update changes is still the one of before.
func (p *progress) notReplaced() bool {
	for name := range p.record.State.LastContainerStatuses {
		was := p.record.Extension().Instances[name].ContainerID
		if status := kubelet.StatusOf(p.pod, name); was != "" && status != nil && status.ContainerID == was {
			return true
		}
	}
	return false
}

// running reports whether all containers of the SidecarSet are ready and kubelet has observed the present pod.
func (t *Target) running(pod *corev1.Pod) bool {
	if kubelet.Unobserved(pod) {
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
