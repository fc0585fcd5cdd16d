package rollout

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/rollout/budget"
)

const (
	defaultProgressDeadline = 600 * time.Second
	// defaultRequestDeadline limits the restart of a pod, so that a rollout does not wait for ever.
	defaultRequestDeadline = 600
)

// MaxFailures limits status.failures, and how many refused requests a rollout with failurePolicy Continue accepts.
const MaxFailures = 10

// Observation is what has been read for a rollout.
type Observation struct {
	// TargetGone says that the workload of spec.targetRef does not exist.
	TargetGone bool
	// Unreadable says why the selector of the rollout or of its workload is unreadable; empty if it is readable.
	Unreadable string
	// Terminating says that the namespace is being deleted.
	Terminating bool
	// Pods are the pods of the target, in any state.
	Pods []*corev1.Pod
	// Others are further pods of the namespace, which a PodDisruptionBudget may select too.
	Others []*corev1.Pod
	// Replicas is the desired number of pods of the target; 0 if it is not known.
	Replicas int32
	// MinReadySeconds is spec.minReadySeconds of the workload.
	MinReadySeconds int32
	// Requests are the requests of the namespace, whoever has created them.
	Requests []*v1beta1.ContainerRecreateRequest
	// Budgets are the PodDisruptionBudgets of the namespace.
	Budgets []*policyv1.PodDisruptionBudget
	// Begun reports whether somebody else has begun an operation on a pod that the objects may not show yet; nil means
	// never.
	Begun func(types.UID) bool
}

// Decision is the result of Next.
type Decision struct {
	// Start are the requests to create now.
	Start []*v1beta1.ContainerRecreateRequest
	// Status is the new status, to write if it differs from the old one.
	Status v1alpha1.RestartRolloutStatus
	// Delete says that the TTL after the end has expired.
	Delete bool
	// Again is when to call Next again.
	Again recheck.At
}

// Next returns what to do about a rollout. It starts nothing that exceeds maxUnavailable or that a PodDisruptionBudget
// does not allow, as defined by package budget.
func Next(rollout *v1alpha1.RestartRollout, observed Observation, now time.Time) Decision {
	v := &view{rollout: rollout, now: now, replicas: observed.Replicas, minReady: minReady(rollout, observed), decision: Decision{Status: *rollout.Status.DeepCopy()}}
	v.decision.Status.ObservedGeneration = rollout.Generation
	if record := finishedBefore(rollout); record != nil {
		v.restore(record)
		return v.decision
	}
	if ended := rollout.Status.CompletionTime; ended != nil {
		v.expire(ended.Time)
		return v.decision
	}
	v.begin()
	v.observe(observed)
	v.count(v.lost(observed.Requests))
	if v.end(&observed) {
		return v.decision
	}
	reason, message := v.start(observed)
	v.progress(reason, message)
	return v.decision
}

// minReady returns how long a pod must be ready to count as available.
func minReady(rollout *v1alpha1.RestartRollout, observed Observation) time.Duration {
	seconds := observed.MinReadySeconds
	if own := rollout.Spec.MinReadySeconds; own != nil {
		seconds = *own
	}
	return time.Duration(seconds) * time.Second
}

// begin sets the start of the rollout: the deadline does not count the time in which it is paused.
func (v *view) begin() {
	switch status := &v.decision.Status; {
	case v.rollout.Spec.Paused:
		status.StartTime = nil
	case status.StartTime == nil:
		status.StartTime = &metav1.Time{Time: v.now}
	}
}

// view is the state of a rollout at one moment.
type view struct {
	rollout *v1alpha1.RestartRollout
	now     time.Time
	// all are the pods of the target that are not being deleted. pods are the ones among them that existed when the
	// rollout was created, in order.
	all, pods []*pod
	// ending are the pods of the target that are being deleted.
	ending []*corev1.Pod
	// unreported is the number of pods whose containers may have been started before the rollout was created.
	unreported int
	// notStarted is the number of pods that existed when the rollout was created and have not started their containers.
	notStarted int
	replicas   int32                                          // Observation.Replicas
	minReady   time.Duration                                  // how long a pod must be ready to count as available
	requests   map[string][]*v1beta1.ContainerRecreateRequest // Observation.Requests, by pod
	decision   Decision
}

// size returns the desired number of pods of the target, or the present number if that is not known.
func (v *view) size() int { return cmp.Or(int(v.replicas), len(v.all)) }

// missing returns how many pods the target lacks. A pod that is being replaced, and whose replacement has not been
// created, is unavailable: a StatefulSet and a DaemonSet only create the replacement after the pod has ended. The
// result is negative during a rollout of the template that creates pods before it deletes others.
func (v *view) missing() int { return v.size() - len(v.all) }

// pod is a pod of the target with the progress of its restart.
type pod struct {
	*corev1.Pod
	request *v1beta1.ContainerRecreateRequest
	stage   stage
	failure v1alpha1.PodFailure
	// replaced says that the request has failed, and the instances to replace have been replaced.
	replaced bool
	// stopping says that the request has failed, and an instance is still being stopped.
	stopping bool
	budget   budget.Pod
}

type stage int

const (
	waiting stage = iota
	restarting
	restarted
	failed
)

func (v *view) observe(observed Observation) {
	v.requests = make(map[string][]*v1beta1.ContainerRecreateRequest, len(observed.Pods))
	for _, request := range observed.Requests {
		v.requests[request.Spec.PodName] = append(v.requests[request.Spec.PodName], request)
	}
	refused := make(map[string]v1alpha1.PodFailure)
	for _, failure := range v.rollout.Status.Failures {
		if failure.Reason == ReasonRefused {
			refused[failure.Pod] = failure
		}
	}
	for _, item := range observed.Pods {
		if request := v.own(item); crr.PodEnded(item) && (request == nil || crr.Completed(request)) {
			continue // otherwise its restart, which may have ended it, is in progress
		}
		if item.DeletionTimestamp != nil {
			v.ending = append(v.ending, item)
			continue
		}
		p := &pod{Pod: item, request: v.own(item)}
		if failure, ok := refused[item.Name]; ok && p.request == nil {
			p.stage, p.failure = failed, failure
		}
		v.setStage(p)
		if observed.Begun != nil && observed.Begun(item.UID) {
			p.budget.UnderWay, p.budget.Available = true, false
		}
		v.all = append(v.all, p)
		switch {
		case p.request != nil || p.stage == failed || v.old(p):
			v.pods = append(v.pods, p)
		case v.mayBeOld(p):
			v.unreported++
		case v.existed(p):
			v.notStarted++
		}
	}
	slices.SortFunc(v.pods, order(v.rollout))
}

// own returns the request by which the rollout restarts the pod, or nil. A request that is being deleted counts only if there is
// no other one of its name.
func (v *view) own(p *corev1.Pod) (own *v1beta1.ContainerRecreateRequest) {
	name := RequestName(v.rollout, p)
	for _, request := range v.requests[p.Name] {
		if request.Name == name && metav1.IsControlledBy(request, v.rollout) && (own == nil || own.DeletionTimestamp != nil) {
			own = request
		}
	}
	return own
}

// setStage determines the progress of the restart of a pod, and the state of the pod for budgets.
func (v *view) setStage(p *pod) {
	var again recheck.At
	p.budget, again = budget.Observe(p.Pod, v.requests[p.Name], v.minReady, v.now)
	v.again(again.Time)
	if v.withdrawn(p) && (!knowsInstances(p.request) || !showsRestart(p.Pod, p.request)) {
		p.request = nil // it does nothing any more
	}
	switch {
	case p.stage == failed:
	case v.withdrawn(p):
		p.stage = restarted
		p.budget.UnderWay = p.budget.UnderWay || !p.budget.Available
	case p.request == nil:
		if why := v.unsuitable(p.Pod); why != "" {
			p.stage, p.failure = failed, v1alpha1.PodFailure{Pod: p.Name, Reason: ReasonNoContainer, Message: why}
		}
	case !crr.Completed(p.request):
		p.stage = restarting
	default:
		v.setEndedStage(p)
	}
}

// withdrawn reports whether the request of a pod was deleted before its end, and what it had begun has ended.
func (v *view) withdrawn(p *pod) bool {
	return p.request != nil && p.request.DeletionTimestamp != nil && !crr.Completed(p.request) && !crr.StopUnderWay(p.request, p.Pod, v.now)
}

// setEndedStage does the same for a pod with a completed request. The restart counts as in progress until the pod is
// available again.
func (v *view) setEndedStage(p *pod) {
	shown := showsRestart(p.Pod, p.request)
	p.stage = restarted
	if outcome := crr.OutcomeOf(p.request); outcome.Reason != "" {
		p.stage, p.failure = failed, v1alpha1.PodFailure{Pod: p.Name, Reason: outcome.Reason, Message: outcome.Message}
		p.stopping = crr.StopUnderWay(p.request, p.Pod, v.now)
		p.replaced = shown && !p.stopping && knowsInstances(p.request)
		if !p.replaced {
			return
		}
	}
	p.budget.Available = p.budget.Available && shown
	p.budget.UnderWay = p.budget.UnderWay || !p.budget.Available
}

// unsuitable returns why the containers of the rollout cannot be restarted in the pod, or "".
func (v *view) unsuitable(p *corev1.Pod) string {
	if trim.TooLarge(p) {
		return "the pod is too large for refit-manager to read its containers: restart it with a ContainerRecreateRequest"
	}
	for _, container := range v.rollout.Spec.Containers {
		if !hasContainer(p, container.Name) {
			return "the pod has no container " + container.Name
		}
	}
	return ""
}

// showsRestart reports whether the status of the pod shows the new instances, and not the ones that the request has
// stopped.
func showsRestart(p *corev1.Pod, request *v1beta1.ContainerRecreateRequest) bool {
	for _, container := range request.Spec.Containers {
		status := kubelet.StatusOf(p, container.Name)
		if status == nil || status.ContainerID == "" || container.StatusContext != nil && status.ContainerID == container.StatusContext.ContainerID {
			return false
		}
	}
	return true
}

// knowsInstances reports whether admission has recorded the instances to replace.
func knowsInstances(request *v1beta1.ContainerRecreateRequest) bool {
	return !slices.ContainsFunc(request.Spec.Containers, func(c v1beta1.ContainerRecreateRequestContainer) bool {
		return c.StatusContext == nil || c.StatusContext.ContainerID == ""
	})
}

func (v *view) again(at time.Time) { v.decision.Again = v.decision.Again.Or(at) }
