package rollout

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/kubelet"
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
	// Replicas is how many pods the target is to have; 0 if that is not known.
	Replicas int32
	// Requests that the rollout has created.
	Requests []*v1beta1.ContainerRecreateRequest
	// Budgets of the namespace.
	Budgets []*policyv1.PodDisruptionBudget
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
// does not allow, if Requests are all that exist.
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
	reason, message := v.start(observed.Budgets)
	v.progress(reason, message)
	return v.decision
}

// view is a rollout at one moment.
type view struct {
	rollout *v1alpha1.RestartRollout
	now     time.Time
	// all are the pods of the target that are not ending, pods those that existed when the rollout was created, in order.
	all, pods []*pod
	replicas  int32 // Observation.Replicas
	decision  Decision
}

// size is how many pods the target has or is to have, if that is more.
func (v *view) size() int { return max(len(v.all), int(v.replicas)) }

// pod is a pod of the target and how far its restart is.
type pod struct {
	*corev1.Pod
	request *v1beta1.ContainerRecreateRequest
	stage   stage
	failure v1alpha1.RestartFailure
	// available: ready for long enough, and its restart, if any, has ended.
	available bool
}

type stage int

const (
	waiting stage = iota
	restarting
	restarted
	failed
)

func (v *view) observe(observed Observation) {
	requests := make(map[string]*v1beta1.ContainerRecreateRequest, len(observed.Requests))
	for _, request := range observed.Requests {
		requests[request.Name] = request
	}
	refused := make(map[string]v1alpha1.RestartFailure)
	for _, failure := range v.rollout.Status.Failures {
		if failure.Reason == ReasonRefused {
			refused[failure.Pod] = failure
		}
	}
	for _, item := range observed.Pods {
		if item.DeletionTimestamp != nil || crr.PodEnded(item) {
			continue
		}
		p := &pod{Pod: item, request: requests[RequestName(v.rollout, item)]}
		if failure, ok := refused[item.Name]; ok && p.request == nil {
			p.stage, p.failure = failed, failure
		}
		v.judge(p)
		v.all = append(v.all, p)
		if p.request != nil || p.stage == failed || v.old(p) {
			v.pods = append(v.pods, p)
		}
	}
	slices.SortFunc(v.pods, order(v.rollout))
}

// old reports whether the pod is one that the rollout is about: it existed before, and its containers have been started.
func (v *view) old(p *pod) bool {
	return !p.CreationTimestamp.After(v.rollout.CreationTimestamp.Time) && slices.ContainsFunc(v.rollout.Spec.Containers, func(name string) bool {
		status := kubelet.StatusOf(p.Pod, name)
		return !hasContainer(p.Pod, name) || status != nil && status.ContainerID != ""
	})
}

// judge says how far the restart of a pod is, and whether the pod is available.
func (v *view) judge(p *pod) {
	ready, since := readiness(p.Pod)
	until := since.Add(time.Duration(v.rollout.Spec.MinReadySeconds) * time.Second)
	p.available = ready && !v.now.Before(until)
	if ready && !p.available {
		v.again(until)
	}
	switch {
	case p.stage == failed:
	case p.request == nil:
		if missing := v.missing(p.Pod); missing != "" {
			p.stage, p.failure = failed, v1alpha1.RestartFailure{Pod: p.Name, Reason: ReasonNoContainer, Message: "the pod has no container " + missing}
		}
	case !crr.Completed(p.request):
		p.stage, p.available = restarting, false
	default:
		if outcome := crr.OutcomeOf(p.request); outcome.Reason != "" {
			p.stage, p.failure = failed, v1alpha1.RestartFailure{Pod: p.Name, Reason: outcome.Reason, Message: outcome.Message}
			return
		}
		p.stage = restarted
		p.available = p.available && showsRestart(p.Pod, p.request)
	}
}

// missing is the first container of the rollout that the pod does not have.
func (v *view) missing(p *corev1.Pod) string {
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
		if status == nil || container.StatusContext != nil && status.ContainerID == container.StatusContext.ContainerID {
			return false
		}
	}
	return true
}

func (v *view) count() {
	status := &v.decision.Status
	before := status.Restarted
	status.Pods, status.Restarted, status.Restarting, status.Failed, status.Unavailable = 0, 0, 0, 0, 0
	var refusals, failures []v1alpha1.RestartFailure
	for _, p := range v.pods {
		status.Pods++
		if p.stage == failed {
			status.Failed++
		}
		switch {
		case p.stage == restarting:
			status.Restarting++
		case p.stage == restarted:
			status.Restarted++
		case p.stage == failed && p.failure.Reason == ReasonRefused:
			refusals = append(refusals, p.failure)
		case p.stage == failed:
			failures = append(failures, p.failure)
		}
	}
	// Refusals are first, as only the status knows of them.
	status.Failures = slices.Concat(refusals, failures)
	status.Failures = status.Failures[:min(len(status.Failures), MaxFailures)]
	for _, p := range v.all {
		if !p.available {
			status.Unavailable++
		}
	}
	// A pod that is to be replaced, and whose successor has not been created, is unavailable too. A StatefulSet and a DaemonSet
	// create it only when the pod before has ended.
	for range v.size() - len(v.all) {
		status.Unavailable++
	}
	if status.Restarted > before || status.LastProgressTime == nil {
		status.LastProgressTime = &metav1.Time{Time: v.now}
	}
}

func (v *view) again(at time.Time) { v.decision.Again = crr.Earlier(at, v.decision.Again) }
