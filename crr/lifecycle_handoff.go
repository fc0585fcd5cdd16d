package crr

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// drain makes the pod not ready when the request asks for it: first the finalizer, then the pod's condition, then the
// request's condition for which the daemon waits, so that nothing is left behind if the manager stops in between.
func (l lifecycle) drain() (LifecycleDecision, bool) {
	strategy := l.request.Spec.Strategy
	if strategy == nil || strategy.UnreadyGracePeriodSeconds == nil ||
		meta.IsStatusConditionTrue(l.request.Status.Conditions, v1beta1.ConditionPreRecreateGrace) {
		return LifecycleDecision{}, false
	}
	if !hasGate(l.pod) {
		return l.passOver(time.Duration(*strategy.UnreadyGracePeriodSeconds) * time.Second)
	}
	if !slices.Contains(l.request.Finalizers, v1beta1.FinalizerUnreadyAcquired) {
		metadata := l.request.ObjectMeta.DeepCopy()
		metadata.Finalizers = append(metadata.Finalizers, v1beta1.FinalizerUnreadyAcquired)
		return LifecycleDecision{Meta: metadata, Why: "the pod is to be made not ready, and ready again in any case"}, true
	}
	status, changed, err := takeReadiness(l.pod, readinessKey(l.request), l.now)
	if err != nil {
		// The daemon gives up waiting after a while and says so in the request.
		return LifecycleDecision{Again: l.nextTimer(), Why: err.Error()}, true
	}
	if changed {
		return LifecycleDecision{Pod: status, Why: "the pod is made not ready"}, true
	}
	return l.grace(l.now, v1beta1.MessagePreRecreateGrace), true
}

// passOver deals with a pod that has no readiness gate: nothing takes it out of its Services, so there is nothing to
// wait for. A refit-daemon knows that; a kruise-daemon waits for the condition and then for the grace period, so it
// is told that the period is over.
func (l lifecycle) passOver(grace time.Duration) (LifecycleDecision, bool) {
	if l.acceptedByUs() {
		return LifecycleDecision{}, false
	}
	return l.grace(l.now.Add(-grace), fmt.Sprintf("Pod has no readiness gate %s, so unreadyGracePeriodSeconds has no effect",
		v1beta1.ReadinessGateKruisePodReady)), true
}

func (l lifecycle) grace(since time.Time, message string) LifecycleDecision {
	status := l.request.Status.DeepCopy()
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(since),
		Reason: v1beta1.ReasonPreRecreateGrace, Message: message,
	})
	return LifecycleDecision{Status: status, Why: "unreadyGracePeriodSeconds begins"}
}

// acceptedByUs reports whether a refit-daemon carries out the request.
func (l lifecycle) acceptedByUs() bool {
	return meta.IsStatusConditionTrue(l.request.Status.Conditions, v1beta1.ConditionAccepted)
}

// handOff writes the pod's status into the request for a kruise-daemon, which sees no pods. A container counts when
// another instance than the one at admission runs; start times are not compared, as they are of the node's clock.
func (l lifecycle) handOff() (LifecycleDecision, bool) {
	if l.acceptedByUs() {
		return LifecycleDecision{}, false
	}
	var snapshot []v1beta1.ContainerStatusSnapshot
	for _, container := range l.request.Spec.Containers {
		status := l.statusOf(container.Name)
		if status == nil || status.State.Running == nil || status.ContainerID == container.StatusContext.ContainerID {
			continue
		}
		snapshot = append(snapshot, v1beta1.ContainerStatusSnapshot{
			Name: status.Name, Ready: status.Ready, RestartCount: status.RestartCount, ContainerID: status.ContainerID,
		})
	}
	// An empty one is never written: between two instances a container is not running, and that is no news.
	if len(snapshot) == 0 || equality.Semantic.DeepEqual(snapshot, l.request.Status.ContainerStatusSnapshot) {
		return LifecycleDecision{}, false
	}
	status := l.request.Status.DeepCopy()
	status.ContainerStatusSnapshot = snapshot
	return LifecycleDecision{Status: status, Again: l.nextTimer(), Why: "the daemon is told of the pod's status"}, true
}

func (l lifecycle) statusOf(container string) *corev1.ContainerStatus {
	if status := statusByName(l.pod.Status.ContainerStatuses, container); status != nil {
		return status
	}
	return statusByName(l.pod.Status.InitContainerStatuses, container)
}
