package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/budget"
)

type stage int

const (
	outdated stage = iota
	updating       // its update has begun and has not ended
	updated
)

// pod is a pod of the workload.
type pod struct {
	*corev1.Pod

	stage stage
	has   bool // its spec is as the template, also while its update is in progress
	// created says that the controller of the workload takes the pod as one of the present template, and does not replace it.
	created bool
	budget  budget.Pod
	// labelled says that the pod has the label of the present revision, or needs none.
	labelled bool
	// recreated says that the pod has the present template and was created since that was found, not updated in place to it.
	recreated bool
	// excluded says that the partition of the owner excludes the pod.
	excluded bool
	// stale says that an update to an earlier template is in progress, although the pod has the present one.
	stale bool
	// unseen says that kubelet has not observed the update of a pod that was not ready before: its node is down.
	unseen  bool
	failure *v1alpha1.PodFailure
}

// done reports whether the update of the pod has ended and the pod is available.
func (p *pod) done() bool { return p.stage == updated && p.budget.Available && p.labelled }

// observe determines the state of all pods.
func (v *view) observe(observed Observation) {
	requests := map[string][]*v1beta1.ContainerRecreateRequest{}
	for _, request := range observed.Requests {
		requests[request.Spec.PodName] = append(requests[request.Spec.PodName], request)
	}
	v.requests = requests
	v.remember(observed.Memory)
	v.since = observed.Since
	all := make([]pod, 0, len(observed.Pods))
	for _, item := range observed.Pods {
		if crr.PodEnded(item) {
			continue
		}
		if item.DeletionTimestamp != nil {
			v.ending = append(v.ending, item)
			continue
		}
		all = append(all, v.state(item))
		p := &all[len(all)-1]
		if observed.Begun != nil && observed.Begun(item.UID) {
			p.budget.UnderWay, p.budget.Available = true, false
		}
		v.pods = append(v.pods, p)
	}
	v.forget(observed.Pods)
	slices.SortFunc(v.pods, v.order)
}

// podState determines the state of a pod.
func (v *view) podState(item *corev1.Pod) pod {
	p := pod{Pod: item}
	var again time.Time
	p.budget, again = v.budgetOf(item)
	v.again(again)
	p.labelled = v.workload.Label == "" || item.Labels[appsv1.ControllerRevisionHashLabelKey] == v.workload.Label
	p.created = !v.dryRun && v.workload.created(item)
	p.excluded = v.workload.excludes(item)
	v.setStage(&p)
	p.recreated = v.recreated(&p)
	return p
}

// recreated reports whether a pod was created with the present template since that was found, and was not updated in place to it.
func (v *view) recreated(p *pod) bool {
	since := v.decision.Status.UpdateRevisionTime
	if p.stage != updated || since == nil || p.CreationTimestamp.Before(since) {
		return false
	}
	recorded, err := record.Read(p.Pod)
	return err == nil && (recorded == nil || recorded.State.Revision != v.workload.Revision)
}

func (v *view) budgetOf(p *corev1.Pod) (budget.Pod, time.Time) {
	minReady := ptr.Deref(v.policy.Spec.MinReadySeconds, v.workload.MinReadySeconds)
	seen, again := budget.Observe(p, v.requests[p.Name], time.Duration(minReady)*time.Second, v.now)
	return seen, again.Time
}

// setStage compares a pod with the template and reads the record of its update. It sets how far the update is, and whether it has
// failed.
func (v *view) setStage(p *pod) {
	if v.fields == nil {
		if p.has = p.created; p.has {
			p.stage = updated
		}
		return
	}
	recorded, err := record.Read(p.Pod)
	// A pod that was never updated is as it was created; admission webhooks may have changed fields of the template.
	p.has = v.fields.Has(p.Pod) || p.created && recorded == nil && err == nil
	if p.excluded { // its template was not compared
		p.has = p.created
	}
	if err != nil {
		p.failure = &v1alpha1.PodFailure{Pod: p.Name, Reason: inplace.BlockedMalformed, Message: err.Error()}
	}
	if p.has {
		p.stage = updated
	}
	other := recorded == nil || recorded.State.Revision != v.workload.Revision
	p.stale = other && p.has && !v.fields.none() && (recorded == nil || recorded.SidecarSet == "") // without a record: drained
	if other && !p.stale {
		v.failNew(p)
		v.refuseOne(p)
		return
	}
	known, err := reported.Read(p.Pod)
	if err != nil {
		known = nil // others may have written it
	}
	decision := inplace.Next(p.Pod, recorded, known, v.now)
	if decision.Delayed { // as after an undo: the former image ran a moment ago
		decision.Kind = inplace.KindWait
	}
	v.again(decision.Again)
	if decision.Kind != inplace.KindDone {
		p.stage = updating
	}
	if p.stale {
		v.failNew(p)
		return
	}
	p.unseen = unreadyBefore(p.Pod, recorded) && kubelet.Unobserved(p.Pod)
	v.fail(p, recorded, &decision)
}

// refuseOne sets that a pod cannot get the template in place although the workload can: it has a limit of an earlier template that the
// present one has not, or admission has given it other resources. Only a new pod gets the template then.
func (v *view) refuseOne(p *pod) {
	if p.stage != outdated || p.excluded || p.failure != nil || !v.fields.resources() {
		return
	}
	if _, err := v.fields.Update(p.Pod, plan.Options{ImagesPresent: true}); err != nil && !unchanged(err) {
		p.failure = &v1alpha1.PodFailure{Pod: p.Name, Reason: v1alpha1.ReasonNotInPlace, Message: err.Error()}
	}
}

// fail sets why the update of a pod has failed: it cannot proceed by itself, or it has not ended or the pod is not ready in time. A pod
// that waits for a resize is available meanwhile.
func (v *view) fail(p *pod, recorded *record.Record, decision *inplace.Decision) {
	restarts := decision.Kind == inplace.KindStep && decision.Step.Kind == inplace.StepRestart
	var notRestarted *v1alpha1.PodFailure
	if restarts {
		notRestarted = v.notRestarted(p, decision.Step.Restart)
	}
	ended := decision.Kind == inplace.KindDone
	if p.stage == outdated || ended && p.budget.Ready {
		return // a pod that is ready only has to stay so
	}
	begun := started(p.Pod, recorded)
	if decision.Kind != inplace.KindBlocked && v.since.After(begun) {
		begun = v.since // while refit-manager did not run, nobody could make the next step
	}
	deadline := begun.Add(time.Duration(ptr.Deref(v.policy.Spec.ProgressDeadlineSeconds, defaultProgressDeadline)) * time.Second)
	switch {
	case notRestarted != nil:
		p.failure = notRestarted
	case decision.Kind == inplace.KindBlocked && (decision.Final || p.budget.Stuck):
		p.failure = &v1alpha1.PodFailure{Pod: p.Name, Reason: decision.Reason, Message: decision.Message}
	case decision.Delayed: // kubelet has not started the instance yet
		p.failure = v.failedBefore(p.Name)
	case p.unseen, unreadyBefore(p.Pod, recorded) && unreplaced(p.Pod, recorded): // its node was down before the update, or has just come back
	case !v.now.Before(deadline):
		message := fmt.Sprintf("not available %s after its update", deadline.Sub(recorded.Changed()))
		if !ended {
			message = fmt.Sprintf("its update has not ended after %s: %s", deadline.Sub(recorded.Changed()), decision.Message)
		}
		p.failure = &v1alpha1.PodFailure{Pod: p.Name, Reason: v1alpha1.ReasonNoProgress, Message: message}
	default:
		v.again(deadline)
	}
}

// failedBefore returns the failure of a pod that the status of the present template has, or nil. Between two attempts to pull a missing
// image kubelet may say that it delays a restart, because it has stopped a container before: the pod has not recovered then.
func (v *view) failedBefore(name string) *v1alpha1.PodFailure {
	status := &v.policy.Status
	if status.UpdateRevision != v.workload.Revision {
		return nil
	}
	if i := slices.IndexFunc(status.Failures, func(f v1alpha1.PodFailure) bool { return f.Pod == name }); i >= 0 {
		return status.Failures[i].DeepCopy()
	}
	return nil
}

// failNew sets that a pod which was created with the new template has failed, as on a new node of a DaemonSet.
func (v *view) failNew(p *pod) {
	update := v.decision.Status.Update
	if p.stage == updated && p.budget.Stuck && update != nil && p.CreationTimestamp.After(update.StartTime.Time) {
		p.failure = &v1alpha1.PodFailure{Pod: p.Name, Reason: v1alpha1.ReasonPodsFailed, Message: "the pod was created with the new template and is not ready"}
	}
}

// annotationDeletionCost is of KEP-2255.
const annotationDeletionCost = "controller.kubernetes.io/pod-deletion-cost"

// order compares pods by the order in which they are updated.
func (v *view) order(a, b *pod) int {
	if v.policy.Spec.PodOrder == v1alpha1.PodOrderDeletionCost {
		if by := cmp.Compare(deletionCost(a.Pod), deletionCost(b.Pod)); by != 0 {
			return by
		}
	}
	if v.workload.Kind == "StatefulSet" {
		return cmp.Compare(ordinal(b.Name), ordinal(a.Name))
	}
	return cmp.Compare(a.Name, b.Name)
}

// deletionCost returns 0 for a pod without a cost, or with one that is not an int32, as Kubernetes does.
func deletionCost(p *corev1.Pod) int64 {
	n, err := strconv.ParseInt(p.Annotations[annotationDeletionCost], 10, 32)
	if err != nil {
		return 0 // not the nearest int32, which ParseInt returns
	}
	return n
}

// ordinal returns the number at the end of the name of a StatefulSet's pod.
func ordinal(name string) int32 {
	n, _ := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 32) // names end with a number
	return int32(n)
}
