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
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/rollout/budget"
)

const (
	defaultProgressDeadline = 600 * time.Second
	// defaultRequestDeadline bounds the restart of a pod, so that a rollout does not wait for one pod without end.
	defaultRequestDeadline = 600
)

// MaxFailures bounds status.failures, and how many refused requests a rollout with failurePolicy Continue bears.
const MaxFailures = 10

// Observation is what has been read for a rollout.
type Observation struct {
	// TargetGone says that the workload of spec.targetRef does not exist.
	TargetGone bool
	// Pods of the target, whatever their state.
	Pods []*corev1.Pod
	// Others are further pods of the namespace, which a PodDisruptionBudget may select too.
	Others []*corev1.Pod
	// Replicas is how many pods the target is to have; 0 if that is not known.
	Replicas int32
	// Requests of the namespace, whoever has created them.
	Requests []*v1beta1.ContainerRecreateRequest
	// Budgets of the namespace.
	Budgets []*policyv1.PodDisruptionBudget
	// Begun reports of a pod that somebody else has begun something on it which the objects may not show yet; nil for never.
	Begun func(types.UID) bool
}

// Decision is what Next answers.
type Decision struct {
	// Start are the requests to be created now.
	Start []*v1beta1.ContainerRecreateRequest
	// Status is the new status, to be written if it differs from the old one.
	Status v1alpha1.RestartRolloutStatus
	// Delete says that the time to live after the end has passed.
	Delete bool
	// Again is when to look again although nothing has changed; zero if that is not known.
	Again time.Time
}

// Next says what is to be done about a rollout. It starts nothing beyond maxUnavailable, nor what a PodDisruptionBudget
// does not allow, as package budget defines it.
func Next(rollout *v1alpha1.RestartRollout, observed Observation, now time.Time) Decision {
	v := &view{rollout: rollout, now: now, replicas: observed.Replicas, decision: Decision{Status: *rollout.Status.DeepCopy()}}
	v.decision.Status.ObservedGeneration = rollout.Generation
	if ended := rollout.Status.CompletionTime; ended != nil {
		v.expire(ended.Time)
		return v.decision
	}
	v.observe(observed)
	v.count()
	if v.end(observed.TargetGone) {
		return v.decision
	}
	reason, message := v.start(observed)
	v.progress(reason, message)
	return v.decision
}

// view is a rollout at one moment.
type view struct {
	rollout *v1alpha1.RestartRollout
	now     time.Time
	// all are the pods of the target that are not ending, pods those that existed when the rollout was created, in order.
	all, pods []*pod
	// ending are the pods of the target that are being deleted.
	ending []*corev1.Pod
	// unreported is how many pods there are whose containers may have been started before the rollout was created.
	unreported int
	replicas   int32                                          // Observation.Replicas
	requests   map[string][]*v1beta1.ContainerRecreateRequest // Observation.Requests, by pod
	decision   Decision
}

// size is how many pods the target is to have, or has if that is not known.
func (v *view) size() int { return cmp.Or(int(v.replicas), len(v.all)) }

// missing is how many pods the target is to have beside those that it has. A pod that is to be replaced, and whose successor has
// not been created, is unavailable: a StatefulSet and a DaemonSet create it only when the pod before has ended. It is negative
// during a rollout of the template that creates pods before it deletes others.
func (v *view) missing() int { return v.size() - len(v.all) }

// pod is a pod of the target and how far its restart is.
type pod struct {
	*corev1.Pod
	request *v1beta1.ContainerRecreateRequest
	stage   stage
	failure v1alpha1.RestartFailure
	// replaced: the request has failed, and the instances that it was to replace have been replaced.
	replaced bool
	// stopping: the request has failed, and an instance is still being stopped.
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
	refused := make(map[string]v1alpha1.RestartFailure)
	for _, failure := range v.rollout.Status.Failures {
		if failure.Reason == ReasonRefused {
			refused[failure.Pod] = failure
		}
	}
	for _, item := range observed.Pods {
		if crr.PodEnded(item) {
			continue
		}
		if item.DeletionTimestamp != nil {
			v.ending = append(v.ending, item)
			continue
		}
		p := &pod{Pod: item, request: v.own(item)}
		if failure, ok := refused[item.Name]; ok && p.request == nil {
			p.stage, p.failure = failed, failure
		}
		v.judge(p)
		if observed.Begun != nil && observed.Begun(item.UID) {
			p.budget.UnderWay, p.budget.Available = true, false
		}
		v.all = append(v.all, p)
		switch {
		case p.request != nil || p.stage == failed || v.old(p):
			v.pods = append(v.pods, p)
		case v.mayBeOld(p):
			v.unreported++
		}
	}
	slices.SortFunc(v.pods, order(v.rollout))
}

// own is the request by which the rollout restarts the pod; nil if there is none.
func (v *view) own(p *corev1.Pod) *v1beta1.ContainerRecreateRequest {
	name := RequestName(v.rollout, p)
	for _, request := range v.requests[p.Name] {
		if request.Name == name && metav1.IsControlledBy(request, v.rollout) {
			return request
		}
	}
	return nil
}

// judge says how far the restart of a pod is, and what the pod is for the budgets.
func (v *view) judge(p *pod) {
	minReady := time.Duration(v.rollout.Spec.MinReadySeconds) * time.Second
	var again time.Time
	p.budget, again = budget.Observe(p.Pod, v.requests[p.Name], minReady, v.now)
	v.again(again)
	switch {
	case p.stage == failed:
	case p.request == nil:
		if lacks := v.lacks(p.Pod); lacks != "" {
			p.stage, p.failure = failed, v1alpha1.RestartFailure{Pod: p.Name, Reason: ReasonNoContainer, Message: "the pod has no container " + lacks}
		}
	case !crr.Completed(p.request):
		p.stage = restarting
	default:
		v.judgeEnded(p)
	}
}

// judgeEnded is judge for a pod whose request has ended. What the request has stopped is under way until the pod is available again.
func (v *view) judgeEnded(p *pod) {
	shown := showsRestart(p.Pod, p.request)
	p.stage = restarted
	if outcome := crr.OutcomeOf(p.request); outcome.Reason != "" {
		p.stage, p.failure = failed, v1alpha1.RestartFailure{Pod: p.Name, Reason: outcome.Reason, Message: outcome.Message}
		p.stopping = crr.StopUnderWay(p.request, p.Pod, v.now)
		p.replaced = shown && !p.stopping && knowsInstances(p.request)
		if !p.replaced {
			return
		}
	}
	p.budget.Available = p.budget.Available && shown
	p.budget.UnderWay = p.budget.UnderWay || !p.budget.Available
}

// lacks is the first container of the rollout that the pod does not have.
func (v *view) lacks(p *corev1.Pod) string {
	for _, name := range v.rollout.Spec.Containers {
		if !hasContainer(p, name) {
			return name
		}
	}
	return ""
}

// showsRestart reports whether the status of the pod is about the instances that the request has brought about, and not
// about those that it has stopped.
func showsRestart(p *corev1.Pod, request *v1beta1.ContainerRecreateRequest) bool {
	for _, container := range request.Spec.Containers {
		status := kubelet.StatusOf(p, container.Name)
		if status == nil || status.ContainerID == "" || container.StatusContext != nil && status.ContainerID == container.StatusContext.ContainerID {
			return false
		}
	}
	return true
}

// knowsInstances reports whether admission has recorded which instances the request is about.
func knowsInstances(request *v1beta1.ContainerRecreateRequest) bool {
	return !slices.ContainsFunc(request.Spec.Containers, func(c v1beta1.ContainerRecreateRequestContainer) bool {
		return c.StatusContext == nil || c.StatusContext.ContainerID == ""
	})
}

func (v *view) again(at time.Time) { v.decision.Again = crr.Earlier(at, v.decision.Again) }
