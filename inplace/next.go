package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/kubelet"
)

// Kind is what is to be done about an update.
type Kind string

// The kinds.
const (
	// KindStep: Decision.Step is to be written with Apply, and Next called with the pod that Apply returns.
	KindStep Kind = "Step"
	// KindWait: Next is to be called when the pod changes, or at Decision.Again.
	KindWait Kind = "Wait"
	// KindBlocked: as KindWait, but something keeps the update from going on. If Decision.Final it will not go on by itself.
	KindBlocked Kind = "Blocked"
	// KindDone: the pod is as it was to be, and every changed container runs and is ready.
	KindDone Kind = "Done"
)

// Decision is what Next answers.
type Decision struct {
	Kind Kind
	Step *Step
	// Container is the one that is waited for, empty if it is the pod as a whole.
	Container string
	// Reason is kubelet's (as ImagePullBackOff, CrashLoopBackOff, Infeasible) or one of the Blocked constants.
	Reason  string
	Message string
	// Again is when to look again although nothing has changed; zero if that is not known.
	Again time.Time
	// Final says of KindBlocked that waiting does not help.
	Final bool
}

// Reasons of KindBlocked that are not kubelet's.
const (
	// BlockedPodEnded: the pod is being deleted or has ended.
	BlockedPodEnded = "PodEnded"
	// BlockedNotRestarted: a container has ended and its restart policy does not restart it.
	BlockedNotRestarted = "NotRestarted"
	// BlockedMalformed: what the record says cannot be applied.
	BlockedMalformed = "Malformed"
)

func wait(container, format string, args ...any) *Decision {
	return &Decision{Kind: KindWait, Container: container, Message: fmt.Sprintf(format, args...)}
}

func blocked(container, reason, format string, args ...any) *Decision {
	return &Decision{Kind: KindBlocked, Container: container, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Next says what is to be done about the update in the record. A nil record means that there is none.
//
// It always ends: each step takes something from what is still to be written, and none is repeated once the pod shows it.
func Next(pod *corev1.Pod, kept *record.Record, known facts.Facts, now time.Time) Decision {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		d := blocked("", BlockedPodEnded, "the pod is being deleted or has ended")
		d.Final = true
		return *d
	}
	v := &view{pod: pod, record: kept, facts: known, now: now}
	if kept == nil {
		v.record = &record.Record{}
	}
	if v.record.Grace != nil {
		return v.grace()
	}
	if v.undrained() {
		return *step(v.drain())
	}
	if d := v.begun(); d != nil {
		return *d
	}
	left := v.record.Remaining(pod)
	if stages := left.Stages(&pod.Spec); len(stages) > 0 {
		return v.stage(&stages[0], len(stages) > 1)
	}
	return v.finish()
}

// view is a pod in its update at one moment.
type view struct {
	pod    *corev1.Pod
	record *record.Record
	facts  facts.Facts
	now    time.Time
}

// stage says what leads to the stage's being written.
func (v *view) stage(stage *plan.Stage, more bool) Decision {
	if check := v.record.State.PreCheckBeforeNext; check != nil && stage.Kind != plan.StageResize && stage.Kind != plan.StageMetadata {
		for _, name := range check.ContainersRequiredReady {
			if d := v.ready(name); d != nil {
				return *d
			}
		}
	}
	if v.stops(stage) {
		if d := v.drained(); d != nil {
			return *d
		}
	}
	if stage.Kind == plan.StageResize {
		return *step(v.resize(stage))
	}
	return *step(v.write(stage, more))
}

// stops reports whether kubelet stops a container as soon as the stage is written. For metadata alone it does not.
func (v *view) stops(stage *plan.Stage) bool {
	switch stage.Kind {
	case plan.StageMetadata, plan.StageRestart:
		return false
	case plan.StageResize:
		return slices.ContainsFunc(stage.Changes, func(c plan.Change) bool { return plan.RestartsOnResize(&v.pod.Spec, &c) })
	default:
		return true
	}
}

// drained is nil once the pod has been out of its Services for long enough, or cannot be taken out of them.
func (v *view) drained() *Decision {
	if !v.gated() {
		return nil
	}
	condition := readiness(v.pod)
	if condition == nil || condition.Status != corev1.ConditionFalse {
		return step(v.drain())
	}
	seconds := v.record.Extension().DrainSeconds
	until := condition.LastTransitionTime.Add(time.Duration(seconds) * time.Second)
	if seconds > 0 && v.now.Before(until) {
		d := wait("", "draining until %s", until.UTC().Format(time.RFC3339))
		d.Again = until
		return d
	}
	return nil
}

// gated reports whether the update makes the pod not ready. That of sidecars does not: the gate belongs to the owner of the
// pod, who would set its condition to True again.
func (v *view) gated() bool { return v.record.SidecarSet == "" && HasReadinessGate(v.pod) }

// undrained reports whether the pod is in its Services although its gate is closed: kubelet has written a status that it
// computed before it saw the gate, and will only correct it with its next sync.
func (v *view) undrained() bool {
	c := readiness(v.pod)
	return v.gated() && !v.record.State.UpdateTimestamp.IsZero() && c != nil && c.Status == corev1.ConditionFalse && isTrue(v.pod, corev1.PodReady)
}

// HasReadinessGate reports whether the pod can be taken out of its Services for an update.
func HasReadinessGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return gate.ConditionType == v1beta1.ReadinessGateInPlaceUpdateReady
	})
}

func readiness(pod *corev1.Pod) *corev1.PodCondition {
	return kubelet.Condition(&pod.Status, v1beta1.ReadinessGateInPlaceUpdateReady)
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := kubelet.Condition(&pod.Status, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// finish opens the pod to its Services again, and then waits for the containers that were changed to be ready.
func (v *view) finish() Decision {
	if len(v.record.State.NextContainerResources) > 0 {
		return *step(v.clear())
	}
	if v.gated() && (!isTrue(v.pod, v1beta1.ReadinessGateInPlaceUpdateReady) || v.readyLate()) {
		return *step(v.markReady())
	}
	for _, name := range v.changed() {
		if d := v.ready(name); d != nil {
			return *d
		}
	}
	return Decision{Kind: KindDone, Message: "updated"}
}

// readyLate reports whether kubelet says of everything but the pod itself that it is ready, once for each update: kubelet
// computes Ready from the conditions that it knew when it last synced the pod, and if the gate was opened before the
// containers were ready that may be a second or more ago.
func (v *view) readyLate() bool {
	return v.record.Opened(v.now) != nil && v.record.Extension().Opened == nil && v.otherwiseReady() && !isTrue(v.pod, corev1.PodReady)
}

// changed are the containers whose image or environment has been begun, in the record's order.
func (v *view) changed() []string {
	names := slices.Sorted(maps.Keys(v.record.State.LastContainerStatuses))
	names = slices.DeleteFunc(names, func(name string) bool { return plan.Find(&v.pod.Spec, name) == nil })
	for _, batch := range v.record.State.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			if !slices.Contains(names, name) && plan.Find(&v.pod.Spec, name) != nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// ready is nil if the container is.
func (v *view) ready(name string) *Decision {
	status := kubelet.StatusOf(v.pod, name)
	if status != nil && status.Ready {
		return nil
	}
	if d := v.hindered(status); d != nil {
		return d
	}
	return wait(name, "waiting for container %s to be ready", name)
}

// grace continues what OpenKruise has begun: the pod is drained, and the whole update is still to be written. It becomes a
// record of ours, of which nothing has been begun.
func (v *view) grace() Decision {
	until := v.record.State.UpdateTimestamp.Add(time.Duration(v.record.Grace.GraceSeconds) * time.Second)
	if v.now.Before(until) {
		d := wait("", "draining until %s", until.UTC().Format(time.RFC3339))
		d.Again = until
		return *d
	}
	next, err := v.record.Adopt()
	if err != nil {
		d := blocked("", BlockedMalformed, "%s", err)
		d.Final = true
		return *d
	}
	return *step(v.save(next, "continue the update that OpenKruise has begun"))
}

func names(containers []string) string {
	if len(containers) == 1 {
		return "container " + containers[0]
	}
	return "containers " + strings.Join(containers, ", ")
}
