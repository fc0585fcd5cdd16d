// Package lifecycle decides what the manager does for a ContainerRecreateRequest: drain and release its pod, hand over
// to the daemon, enforce deadlines that no daemon enforces, and clean up. Like package crr, it only decides.
package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/recheck"
)

const (
	// daemonResponseTimeout is how long a daemon may take until it writes the first status of a request.
	daemonResponseTimeout = time.Minute
	// daemonSilence is how long a node may have no ready daemon while a request is in progress: long enough to update a
	// daemon, including the pull of its image.
	daemonSilence = 5 * time.Minute
	// deadlineBackstop is how long after activeDeadlineSeconds the manager ends a request that the daemon has not
	// ended. The daemon normally ends it at the deadline, with a more detailed message.
	deadlineBackstop = 3 * time.Second
	// retireWithin limits how long an ended request keeps its label and finalizer while other requests of its node are
	// in progress: their removal is not urgent, and would delay the writes for those requests.
	retireWithin = 30 * time.Second
	// retireAgain is the interval between checks whether the other requests have completed.
	retireAgain = 2 * time.Second
)

// ReasonNodeGone says that the pod's node no longer exists.
const ReasonNodeGone = "NodeGone"

// Observation is what the manager knows about the pod and the node of a request.
type Observation struct {
	// Pod is the pod with the request's namespace and spec.podName, whatever its UID; nil if there is none.
	Pod *corev1.Pod
	// NodeGone says that the node in LabelNodeName does not exist.
	NodeGone bool
	// NoDaemonSince is since when the manager has seen no ready daemon on the node, by its own clock. It is zero if
	// there is one, or if the node's daemon is not expected to be a pod.
	NoDaemonSince time.Time
	// KruiseDaemon says that a kruise-daemon is ready on the node, and no refit-daemon.
	KruiseDaemon bool
	// NodeBusy says that other requests of the node are not completed.
	NodeBusy bool
}

// Decision holds at most one write. The write is for the observed version of the object: the caller sends it with the
// resourceVersion as precondition, and after a conflict it observes and decides again.
type Decision struct {
	Status *v1beta1.ContainerRecreateRequestStatus // of the request, to be stored through its subresource
	Meta   *metav1.ObjectMeta                      // of the request; labels and finalizers differ
	Pod    *corev1.PodStatus                       // of the pod, to be stored through its subresource; conditions differ
	Delete bool                                    // the request
	// Again is when to decide again even without a change.
	Again recheck.At
	// Why explains the decision, for the log.
	Why string
}

// Next decides what the manager does for a request. A daemon carries out the request itself, with or without the
// manager. Next decides in this order:
//
//  1. For a request that has ended or is being deleted it releases the pod's readiness, removes finalizer and label,
//     and deletes the request after ttlSecondsAfterFinished.
//  2. It ends a request that cannot be carried out: not admitted, pod gone, node gone, deadline passed, no daemon.
//  3. For a request in progress it makes the pod not ready, if the request asks for that, and copies the pod's status
//     into the request for a kruise-daemon.
//
// A request that a refit-daemon carries out costs one write, which removes the label. A request that a refit-daemon
// carries out costs one write, the one that removes the label.
func Next(request *v1beta1.ContainerRecreateRequest, observed Observation, now time.Time) Decision {
	l := lifecycle{
		request: request.DeepCopy(), stored: request.Status, pod: observed.Pod, noDaemonSince: observed.NoDaemonSince,
		kruiseDaemon: observed.KruiseDaemon, nodeBusy: observed.NodeBusy, now: now,
	}
	v1beta1.ReadHandOff(l.request)
	if l.pod != nil && string(l.pod.UID) != request.Labels[v1beta1.LabelPodUID] {
		l.pod = nil // another pod with the same name
	}
	if crr.Completed(request) || request.DeletionTimestamp != nil {
		return l.cleanUp()
	}
	if outcome, ended := l.ended(observed.NodeGone); ended {
		status := *request.Status.DeepCopy()
		crr.Complete(&status, outcome, request.Generation, now)
		return Decision{Status: &status, Why: outcome.Message}
	}
	if request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating {
		if decision, ok := l.drain(); ok {
			return decision
		}
		if decision, ok := l.handOff(); ok {
			return decision
		}
	}
	return Decision{Again: l.nextTimer(), Why: "waiting for the daemon"}
}

type lifecycle struct {
	request *v1beta1.ContainerRecreateRequest // with the status completed by ReadHandOff
	stored  v1beta1.ContainerRecreateRequestStatus
	pod     *corev1.Pod // the pod with the request's UID, or nil
	// noDaemonSince is Observation.NoDaemonSince.
	noDaemonSince time.Time
	kruiseDaemon  bool // Observation.KruiseDaemon
	nodeBusy      bool // Observation.NodeBusy
	now           time.Time
}

// cleanUp decides for a request that has ended or is being deleted.
func (l lifecycle) cleanUp() Decision {
	deleting := l.request.DeletionTimestamp != nil
	if !deleting && l.expiry().Passed(l.now) {
		return Decision{Delete: true, Why: "ttlSecondsAfterFinished has passed"}
	}
	if slices.Contains(l.request.Finalizers, v1beta1.FinalizerUnreadyAcquired) {
		if status, changed := giveBackReadiness(l.pod, readinessKey(l.request), l.now); changed {
			return Decision{Pod: status, Why: "the pod is no longer kept not ready"}
		}
	}
	if status, changed := l.addMissingConditions(); changed && !deleting {
		return Decision{Status: status, Why: "the conditions are set from the outcome"}
	}
	if metadata, changed := l.retire(); changed {
		if l.nodeBusy && !deleting && l.request.Status.CompletionTime != nil && l.now.Before(l.request.Status.CompletionTime.Add(retireWithin)) {
			return Decision{Again: l.expiry().Or(l.now.Add(retireAgain)), Why: "the request has ended, and others of its node have not"}
		}
		return Decision{Meta: metadata, Why: "the request has ended"}
	}
	if deleting {
		return Decision{Why: "the request is being deleted"}
	}
	return Decision{Again: l.expiry(), Why: "the request has ended"}
}

// retire removes the finalizer and, unless the request is being deleted, the label by which daemons select the request.
func (l lifecycle) retire() (*metav1.ObjectMeta, bool) {
	metadata := l.request.ObjectMeta.DeepCopy()
	metadata.Finalizers = slices.DeleteFunc(metadata.Finalizers, func(f string) bool { return f == v1beta1.FinalizerUnreadyAcquired })
	if l.request.DeletionTimestamp == nil {
		delete(metadata.Labels, v1beta1.LabelActive)
	}
	return metadata, !equality.Semantic.DeepEqual(*metadata, l.request.ObjectMeta)
}

// expiry returns when to delete the request, or zero to keep it.
func (l lifecycle) expiry() recheck.At {
	if l.request.Spec.TTLSecondsAfterFinished == nil || l.request.Status.CompletionTime == nil {
		return recheck.At{}
	}
	return recheck.On(l.request.Status.CompletionTime.Add(time.Duration(*l.request.Spec.TTLSecondsAfterFinished) * time.Second))
}

// addMissingConditions sets the conditions of a request that was ended by a daemon that does not set conditions, so
// that kubectl wait works. It also completes a request again if such a daemon has overwritten the phase after the end.
func (l lifecycle) addMissingConditions() (*v1beta1.ContainerRecreateRequestStatus, bool) {
	stored := l.request.Status
	if stored.Phase == v1beta1.ContainerRecreateRequestCompleted && meta.FindStatusCondition(stored.Conditions, v1beta1.ConditionSucceeded) != nil &&
		meta.FindStatusCondition(stored.Conditions, v1beta1.ConditionFinished) != nil {
		return nil, false
	}
	if !crr.Completed(l.request) {
		return nil, false
	}
	status := stored.DeepCopy()
	at := l.now
	if stored.CompletionTime != nil {
		at = stored.CompletionTime.Time
	}
	crr.Complete(status, crr.OutcomeOf(l.request), l.request.Generation, at)
	return status, true
}

// ended returns the outcome of a request that cannot be carried out, and false for others.
func (l lifecycle) ended(nodeGone bool) (crr.Outcome, bool) {
	node := l.request.Labels[v1beta1.LabelNodeName]
	if err := admission.CheckAdmitted(l.request); err != nil {
		return crr.Outcome{Reason: crr.ReasonInvalidRequest, Message: fmt.Sprintf("the request has not passed admission: %v", err)}, true
	}
	switch {
	case l.pod == nil || l.pod.DeletionTimestamp != nil && !podrules.SidecarTerminated(l.pod):
		return crr.Outcome{Reason: crr.ReasonPodGone, Message: "pod has gone"}, true
	case nodeGone:
		return crr.Outcome{Reason: ReasonNodeGone, Message: fmt.Sprintf("node %s does not exist any more", node)}, true
	case l.deadline().Passed(l.now):
		return crr.Outcome{Reason: crr.ReasonDeadlineExceeded, Message: "recreating has exceeded the activeDeadlineSeconds"}, true
	case l.request.Status.Phase == "" && l.responseDeadline().Passed(l.now):
		return crr.Outcome{Reason: crr.ReasonDaemonNotResponding, Message: fmt.Sprintf(
			"daemon has not responded for a long time: is the pod of refit-daemon on node %s running and ready?", node)}, true
	case l.request.Status.Phase != "" && l.silenceDeadline().Passed(l.now):
		return crr.Outcome{Reason: crr.ReasonDaemonNotResponding, Message: fmt.Sprintf(
			"daemon has not responded for a long time: no pod of refit-daemon on node %s has been ready for %s", node, daemonSilence)}, true
	}
	return crr.Outcome{}, false
}

// deadline returns when the manager ends the request, or zero if it has no deadline.
func (l lifecycle) deadline() recheck.At {
	if l.request.Spec.ActiveDeadlineSeconds == nil {
		return recheck.At{}
	}
	limit := time.Duration(*l.request.Spec.ActiveDeadlineSeconds) * time.Second
	return recheck.On(l.request.CreationTimestamp.Add(limit + deadlineBackstop))
}

func (l lifecycle) responseDeadline() recheck.At {
	return recheck.On(l.request.CreationTimestamp.Add(daemonResponseTimeout))
}

// silenceDeadline returns when to end a request in progress because its node has no daemon. It returns zero if there is
// a daemon, or if a sidecar in the pod carries out the request.
func (l lifecycle) silenceDeadline() recheck.At {
	if l.noDaemonSince.IsZero() || l.bySidecar() {
		return recheck.At{}
	}
	return recheck.On(l.noDaemonSince.Add(daemonSilence))
}

func (l lifecycle) nextTimer() recheck.At {
	if l.request.Status.Phase == "" {
		return l.deadline().Or(l.responseDeadline().Time)
	}
	return l.deadline().Or(l.silenceDeadline().Time)
}
