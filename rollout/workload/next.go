package workload

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/recheck"
)

// Observation is what has been read for a policy.
type Observation struct {
	// Workload is the target; nil if it does not exist.
	Workload *Workload
	// Unreadable says why the workload cannot be read; empty if it can. Of such a workload only the metadata and the kind are used.
	Unreadable string
	// Unheld says why nothing would hold the workload when its template changes; empty if something would.
	Unheld string
	// Older is the name of an older policy of the same workload; empty if there is none.
	Older string
	// Pods are the pods that the workload controls, in any state.
	Pods []*corev1.Pod
	// Others are further pods of the namespace, which a PodDisruptionBudget may select too.
	Others []*corev1.Pod
	// Requests are the ContainerRecreateRequests of the namespace.
	Requests []*v1beta1.ContainerRecreateRequest
	// Pulls has the pulls of images before the update.
	Pulls Pulls
	// Budgets are the PodDisruptionBudgets of the namespace.
	Budgets []*policyv1.PodDisruptionBudget
	// Refused has the pods whose update the API server has refused to begin, by their UIDs.
	Refused map[types.UID]RefusedWrite
	// Begun reports whether somebody else has begun an operation on a pod that the objects may not show yet; nil means
	// never.
	Begun func(types.UID) bool
	// Since is when this controller has seen the policy first; zero means always.
	Since time.Time
	// Memory has the state of pods that have not changed since the last decision for the policy; nil if nothing is kept.
	Memory *Memory
}

// Decision is the result of Next.
type Decision struct {
	// Status is the new status. It has to be written before the actions, if it differs from the old one.
	Status v1alpha1.InPlaceUpdatePolicyStatus
	// Actions are to be carried out now, in any order.
	Actions []Action
	// Fields make the updates of pods; nil if nothing is updated.
	Fields *Fields
	// NotPulled says why pods are updated although images were not pulled on all nodes before; empty if they were.
	NotPulled string
	// NothingRestarted is a label or annotation that an update has changed which has just ended and has restarted no container; empty
	// otherwise.
	NothingRestarted string
	// Finalizer says whether the policy has to have [v1alpha1.FinalizerInPlaceUpdate].
	Finalizer bool
	// Again is when to call Next again.
	Again recheck.At
}

// ActionKind says what is done.
type ActionKind string

// The kinds.
const (
	ActionUpdate      ActionKind = "Update"      // begin the update of Pod, with Fields.Update and inplace.Start
	ActionContinue    ActionKind = "Continue"    // continue the update of Pod, with inplace.Next
	ActionWithdraw    ActionKind = "Withdraw"    // take back what an earlier update of Pod has not written, with Withdraw
	ActionPull        ActionKind = "Pull"        // create Job, which pulls an image
	ActionLabel       ActionKind = "Label"       // set the label controller-revision-hash of Pod to Label
	ActionEvict       ActionKind = "Evict"       // evict Pod, whose controller replaces it
	ActionKeepHistory ActionKind = "KeepHistory" // create ReplicaSet, or write its template if it exists
	ActionSetTemplate ActionKind = "SetTemplate" // write the template of ReplicaSet
	ActionRelease     ActionKind = "Release"     // release the workload
	ActionUndo        ActionKind = "Undo"        // write Template to the workload
	ActionHoldLabel   ActionKind = "HoldLabel"   // set [v1alpha1.LabelHoldUID] of the workload to Label; remove it if Label is empty
)

// Action is one thing to do. Each can be repeated.
type Action struct {
	Kind       ActionKind
	Pod        *corev1.Pod
	Label      string
	Job        *v1beta1.ImagePullJob
	ReplicaSet *ReplicaSet
	Template   *corev1.PodTemplateSpec
}

// Next returns what to do about a policy.
func Next(policy *v1alpha1.InPlaceUpdatePolicy, observed Observation, now time.Time) Decision {
	v := &view{policy: policy, workload: observed.Workload, now: now, decision: Decision{Status: *policy.Status.DeepCopy()}}
	v.decision.Status.ObservedGeneration = policy.Generation
	switch {
	case observed.Unreadable != "":
		v.refuse(v1alpha1.ReasonTargetNotReadable, observed.Unreadable)
		labelled := v.unlabel() // without an accepted policy nobody would release it
		v.decision.Finalizer = slices.Contains(policy.Finalizers, v1alpha1.FinalizerInPlaceUpdate) && (policy.DeletionTimestamp == nil || labelled)
		return v.decision
	case observed.Workload == nil:
		v.refuse(v1alpha1.ReasonTargetNotFound, policy.Spec.TargetRef.Kind+" "+policy.Spec.TargetRef.Name+" does not exist")
		return v.decision
	case observed.Older != "":
		v.refuse(v1alpha1.ReasonConflicted, "InPlaceUpdatePolicy "+observed.Older+" is for the same workload and older")
		return v.decision
	}
	labelled := v.holdLabel()
	if v.unlabelled() {
		v.acceptLater()
		v.decision.Finalizer = true
		return v.decision
	}
	v.accept()
	needed := policy.DeletionTimestamp == nil || v.workload.Held || labelled
	if v.decision.Finalizer = needed || v.unfinishedByOwner(); !v.workload.Observed {
		return v.decision // its controller will write the workload
	}
	v.decision.Status.ObservedTargetGeneration = v.workload.Generation
	v.revise(observed)
	if refused := v.compare(observed); refused != nil {
		v.observe(observed)
		v.notInPlace(observed, refused)
	} else {
		v.observe(observed)
		v.proceed(observed)
	}
	v.decision.Finalizer = needed || v.unfinishedByOwner() && v.completes()
	v.count()
	v.warn(observed.Unheld)
	return v.decision
}

// view is the state of a policy and its workload at one moment.
type view struct {
	policy   *v1alpha1.InPlaceUpdatePolicy
	workload *Workload
	now      time.Time
	fields   *Fields       // nil if the template is not possible in place
	pods     []*pod        // that are not being deleted, in order
	ending   []*corev1.Pod // that are being deleted
	requests map[string][]*v1beta1.ContainerRecreateRequest
	revised  bool // the template is another one than before
	dryRun   bool // the workload is an answer to a dry run: its revision is still the one of the template before
	// restored says that the pods get the former template, although the workload has one that failed and was undone.
	restored bool
	memory   *Memory   // nil if nothing is kept
	since    time.Time // Observation.Since
	decision Decision
}

// revise records the revision of the present template. Steps begin again with another one.
func (v *view) revise(observed Observation) {
	status := &v.decision.Status
	if v.restore(); status.UpdateRevision == v.workload.Revision {
		return
	}
	v.revised = true
	// After an undo the former template was just written, unless somebody has written another one at the same time.
	goingBack := status.Update != nil && status.UpdateRevision == status.UndoneRevision &&
		(v.goesBack() || slices.ContainsFunc(observed.Pods, v.workload.created))
	if status.UpdateRevision != "" || v.workload.Held { // otherwise the template is older than the policy
		status.UpdateRevisionTime = &metav1.Time{Time: v.now.Truncate(time.Second)} // as creation times of pods
	}
	status.UpdateRevision, status.Step, status.StepTime = v.workload.Revision, nil, nil
	if status.UndoneRevision != v.workload.Revision && !goingBack {
		status.UndoneRevision = "" // another template can be undone too
	}
}

// compare determines the fields that have changed. It returns why they cannot be changed in place, or nil.
func (v *view) compare(observed Observation) *plan.RefusedError {
	former := v.workload.former(observed.Pods)
	if v.restored {
		former = append(former, observed.Workload.Template)
	}
	fields, err := NewFields(v.workload.Template, former, v.policy.Status.Update)
	if refused := (*plan.RefusedError)(nil); errors.As(err, &refused) {
		return refused
	}
	v.fields = fields
	return nil
}

// proceed does what comes next for a template that pods can follow in place.
func (v *view) proceed(observed Observation) {
	w := v.workload
	switch {
	case v.restored:
		v.updateToFormer(observed)
	case v.fields.none() && (w.Held || w.OwnerHolds && v.policy.Spec.HoldPolicy == v1alpha1.HoldByOwner) && v.relabel():
	case v.fields.none():
		v.finish()
	case w.mixed() && w.OwnerHolds:
		v.pausedFor("the owner of the workload has paused it, and " + ownRollout + ": resume the Deployment until that has ended")
	case w.mixed():
		v.replacing(ownRollout)
	case w.OwnerHolds && v.policy.Spec.HoldPolicy != v1alpha1.HoldByOwner:
		v.pausedFor("the owner of the workload has paused it")
	case !w.Held && !w.OwnerHolds && v.followed():
		v.finish() // it has been released
	case !w.Held && !w.OwnerHolds && v.leftBehind():
		v.update(observed)
	case !w.Held && !w.OwnerHolds:
		v.notHeld()
	case v.applyDeletionPolicy():
	case v.undone() && (v.decision.Status.Update != nil || v.deleting()):
		v.undo("this template has failed before") // again, if the former template was not written
	case v.undone():
		v.set(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonUndone, "this template has failed before and was undone; change it to try again")
	default:
		v.update(observed)
	}
}

// update updates pods, and finishes when all have the template.
func (v *view) update(observed Observation) {
	v.record()
	v.decision.Fields = v.fields
	for _, p := range v.pods {
		switch {
		case p.stage == updating && p.stale:
			v.act(Action{Kind: ActionWithdraw, Pod: p.Pod})
		case p.stage == updating:
			v.act(Action{Kind: ActionContinue, Pod: p.Pod})
		case p.stage == updated && p.budget.Available && !p.labelled && !p.excluded:
			v.act(Action{Kind: ActionLabel, Pod: p.Pod, Label: v.workload.Label})
		}
	}
	if v.complete() {
		v.finish()
		return
	}
	v.begin(observed)
}

// complete reports whether the update has ended: every pod that is not excluded has the template and is available. A pod that is
// missing is created with the new template at the end, so the pace has to allow that. Pods that are being deleted do not matter: they
// may stay for long, for example if their node is down.
func (v *view) complete() bool {
	if missing := v.size() - len(v.pods); missing > 0 {
		if allowed, _, _ := v.allowed(); allowed < missing {
			return false
		}
	}
	return v.followed() && !slices.ContainsFunc(v.pods, func(p *pod) bool { return !p.excluded && !p.done() })
}

// followed reports whether every pod that the owner of a StatefulSet does not exclude has the template, available or not,
// so that the controller of a released workload finds nothing to do.
func (v *view) followed() bool {
	if w := v.workload; w.Kind == "Deployment" && !w.Held && !w.OwnerHolds && (w.active() == nil || !sameTemplate(&w.active().Spec.Template, w.Template)) {
		return false
	}
	return !slices.ContainsFunc(v.pods, func(p *pod) bool { return !p.excluded && (!p.has || !p.labelled) })
}

// record records the fields in the status, which is written before any pod gets them.
func (v *view) record() {
	status := &v.decision.Status
	if status.Update != nil && v.fields.sameAs(status.Update) {
		return
	}
	status.Update = v.fields.update.DeepCopy()
	if status.Update.StartTime.IsZero() {
		status.Update.StartTime.Time = v.now
	}
}

func (v *view) act(a Action) { v.decision.Actions = append(v.decision.Actions, a) }

func (v *view) again(at time.Time) { v.decision.Again = v.decision.Again.Or(at) }
