package inplace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// Kind says what to do about an update.
type Kind string

// The kinds.
const (
	// KindStep means to write Decision.Step with Apply, and to call Next with the pod that Apply returns.
	KindStep Kind = "Step"
	// KindWait means to call Next when the pod changes, or at Decision.Again.
	KindWait Kind = "Wait"
	// KindBlocked is like KindWait, but something prevents the update from proceeding. If Decision.Final, it will not
	// proceed by itself.
	KindBlocked Kind = "Blocked"
	// KindDone means that the pod has all changes, and every changed container runs and is ready.
	KindDone Kind = "Done"
)

// Decision is the result of Next.
type Decision struct {
	Kind Kind
	Step *Step
	// Container is the container to wait for, or "" for the pod as a whole.
	Container string
	// Reason is a reason from kubelet (for example ImagePullBackOff, CrashLoopBackOff, Infeasible) or one of the
	// Blocked constants.
	Reason  string
	Message string
	// Again is when to call Next again without a change; zero if that is not known.
	Again time.Time
	// Final says for KindBlocked that waiting does not help.
	Final bool
	// Delayed says for KindBlocked that kubelet has not tried the new instance yet, and will at the end of its crash back-off.
	Delayed bool
}

// Reasons of KindBlocked that do not come from kubelet.
const (
	// BlockedPodEnded means that the pod is being deleted or has ended.
	BlockedPodEnded = "PodEnded"
	// BlockedNotRestarted means that a container has ended and its restart policy does not restart it.
	BlockedNotRestarted = "NotRestarted"
	// BlockedMalformed means that the record cannot be applied, or that the pod has unreadable quantities.
	BlockedMalformed = "Malformed"
)

func wait(container, format string, args ...any) *Decision {
	return &Decision{Kind: KindWait, Container: container, Message: fmt.Sprintf(format, args...)}
}

func blocked(container, reason, format string, args ...any) *Decision {
	return &Decision{Kind: KindBlocked, Container: container, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Next returns what to do about the update in the record. A nil record means that there is no update.
//
// Repeated calls always come to an end: each step removes something from what remains to be written, and no step is
// repeated after the pod shows its result. A stuck container only delays what has to come after it, see
// [record.Record.After].
func Next(pod *corev1.Pod, kept *record.Record, known reported.Containers, now time.Time) Decision {
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
	v := &view{pod: pod, record: kept, reported: known, now: now}
	if kept == nil {
		v.record = &record.Record{}
	}
	if v.record.Grace != nil {
		return v.grace()
	}
	if v.readyDuringDrain() {
		return *v.drain("set Ready to False again: kubelet had not seen the drain when it wrote True")
	}
	stuck := v.awaitBegun()
	if stuck != nil && stuck.Kind != KindBlocked {
		return *stuck
	}
	stage, held := v.writable()
	switch {
	case stage != nil:
		return v.stage(stage)
	case held != nil:
		return *cmp.Or(stuck, held)
	case stuck != nil && !v.mayBeReady(stuck):
		return *stuck
	case stuck != nil && v.gated() && gate.Shut(pod):
		return *step(v.open(nil))
	case stuck != nil:
		return *stuck
	}
	return v.finish()
}

// mayBeReady reports whether the pod need not stay not ready for the stuck part: a resize stops no container, and a
// container that has ended for good is not started again.
func (v *view) mayBeReady(stuck *Decision) bool {
	return stuck.Container == "" || stuck.Reason == BlockedNotRestarted
}

// view is the state of a pod and its update at one moment.
type view struct {
	pod      *corev1.Pod
	record   *record.Record
	reported reported.Containers
	now      time.Time
}

// writable returns the first stage that can be written, without containers that have to wait until others are ready. If
// there is none, held is what to wait for, or nil if nothing remains to be written.
func (v *view) writable() (stage *plan.Stage, held *Decision) {
	left := v.record.Remaining(v.pod)
	stages, after := left.Stages(&v.pod.Spec), v.record.After()
	for i := range stages {
		free := stages[i].Without(func(change *plan.Change) bool {
			for _, name := range after[change.Container] {
				if d := v.awaitReady(name); d != nil {
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

// stage returns the next step towards writing the stage.
func (v *view) stage(stage *plan.Stage) Decision {
	if v.stops(stage) {
		if d := v.awaitDrain(); d != nil {
			return *d
		}
	}
	if stage.Kind == plan.StageResize {
		return *step(v.resize(stage))
	}
	return *step(v.write(stage))
}

// stops reports whether kubelet stops a container when the stage is written. It does not for metadata alone.
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

// finish makes the pod ready again, and then waits until the changed containers are ready.
func (v *view) finish() Decision {
	if len(v.record.State.NextContainerResources) > 0 {
		return *step(v.clear())
	}
	if v.gated() && (gate.Shut(v.pod) || v.readyLate()) {
		return *step(v.open(nil))
	}
	for _, name := range v.changed() {
		if d := v.awaitReady(name); d != nil {
			return *d
		}
	}
	return Decision{Kind: KindDone, Message: "updated"}
}

// changed returns the containers whose image or environment has been changed, in the order of the record.
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

// awaitReady returns nil if the container is ready, or else what to wait for.
func (v *view) awaitReady(name string) *Decision {
	status := kubelet.StatusOf(v.pod, name)
	if status != nil && status.Ready {
		return nil
	}
	if d := v.startProblem(status); d != nil {
		return d
	}
	return wait(name, "waiting for container %s to be ready", name)
}

// grace continues an update that OpenKruise has begun: the pod is drained, and the whole update remains to be written.
// It converts it to a record of ours in which no change has begun.
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
