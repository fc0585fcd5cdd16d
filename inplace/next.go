package inplace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/gate"
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
	// BlockedMalformed: what the record says cannot be applied, or the pod has quantities that are not readable.
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
// It always ends: each step takes something from what is still to be written, and none is repeated once the pod shows it. What
// is stuck holds up only what has to come after it, see [record.Record.After].
func Next(pod *corev1.Pod, kept *record.Record, known facts.Facts, now time.Time) Decision {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		d := blocked("", BlockedPodEnded, "the pod is being deleted or has ended")
		d.Final = true
		return *d
	}
	if err := foreign.Pod(pod); err != nil {
		d := blocked("", BlockedMalformed, "%s", err)
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
		return *v.drain()
	}
	stuck := v.begun()
	if stuck != nil && stuck.Kind != KindBlocked {
		return *stuck
	}
	stage, held := v.writable()
	switch {
	case stage != nil:
		return v.stage(stage)
	case held != nil:
		return *cmp.Or(stuck, held)
	case stuck != nil && !v.idle(stuck):
		return *stuck
	case stuck != nil && v.gated() && gate.Shut(pod):
		return *step(v.open())
	case stuck != nil:
		return *stuck
	}
	return v.finish()
}

// idle reports whether nothing is to be expected of what is stuck that the pod should be out of its Services for: a resize
// stops no container, and one that has ended for good is not started again.
func (v *view) idle(stuck *Decision) bool {
	return stuck.Container == "" || stuck.Reason == BlockedNotRestarted
}

// view is a pod in its update at one moment.
type view struct {
	pod    *corev1.Pod
	record *record.Record
	facts  facts.Facts
	now    time.Time
}

// writable is the first stage that can be written, without the containers for which others have to be ready first. If there is
// none, held is what is waited for; it is nil if nothing is left to be written.
func (v *view) writable() (stage *plan.Stage, held *Decision) {
	left := v.record.Remaining(v.pod)
	stages, after := left.Stages(&v.pod.Spec), v.record.After()
	for i := range stages {
		free := stages[i].Without(func(change *plan.Change) bool {
			for _, name := range after[change.Container] {
				if d := v.ready(name); d != nil {
					held = cmp.Or(held, d)
					return true
				}
			}
			return false
		})
		if free != nil {
			return free, nil
		}
	}
	return nil, held
}

// stage says what leads to the stage's being written.
func (v *view) stage(stage *plan.Stage) Decision {
	if v.stops(stage) {
		if d := v.drained(); d != nil {
			return *d
		}
	}
	if stage.Kind == plan.StageResize {
		return *step(v.resize(stage))
	}
	return *step(v.write(stage))
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

// finish opens the pod to its Services again, and then waits for the containers that were changed to be ready.
func (v *view) finish() Decision {
	if len(v.record.State.NextContainerResources) > 0 {
		return *step(v.clear())
	}
	if v.gated() && (gate.Shut(v.pod) || v.readyLate()) {
		return *step(v.open())
	}
	for _, name := range v.changed() {
		if d := v.ready(name); d != nil {
			return *d
		}
	}
	return Decision{Kind: KindDone, Message: "updated"}
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
