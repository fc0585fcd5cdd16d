package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/kubelet"
)

// drain makes the pod not ready if the request asks for it. It writes the finalizer first, then the pod's condition,
// then the hand-over that the daemon waits for, so that a manager that stops in between leaves nothing behind.
func (l lifecycle) drain() (Decision, bool) {
	strategy := l.request.Spec.Strategy
	if strategy == nil || strategy.UnreadyGracePeriodSeconds == nil {
		return Decision{}, false
	}
	if meta.IsStatusConditionTrue(l.request.Status.Conditions, v1beta1.ConditionPreRecreateGrace) {
		return l.handOver(l.request.Status, "unreadyGracePeriodSeconds begins")
	}
	if !podrules.HasReadinessGate(l.pod) {
		return l.skipDrain(time.Duration(*strategy.UnreadyGracePeriodSeconds) * time.Second)
	}
	if !slices.Contains(l.request.Finalizers, v1beta1.FinalizerUnreadyAcquired) {
		metadata := l.request.ObjectMeta.DeepCopy()
		metadata.Finalizers = append(metadata.Finalizers, v1beta1.FinalizerUnreadyAcquired)
		return Decision{Meta: metadata, Why: "the pod is to be made not ready, and ready again in any case"}, true
	}
	status, changed, err := takeReadiness(l.pod, readinessKey(l.request), l.now)
	if err != nil {
		// The daemon fails the request after drainPatience, with a message.
		return Decision{Again: l.nextTimer(), Why: err.Error()}, true
	}
	if changed {
		return Decision{Pod: status, Why: "the pod is made not ready"}, true
	}
	return l.grace(l.now, v1beta1.MessagePreRecreateGrace)
}

// skipDrain handles a pod without the readiness gate. It cannot be made not ready, so there is nothing to wait for. A
// refit-daemon knows that. A kruise-daemon waits for the condition and then for the grace period, so the condition says
// that the grace period is over.
func (l lifecycle) skipDrain(grace time.Duration) (Decision, bool) {
	if l.carriedOutByRefit() {
		return Decision{}, false
	}
	return l.grace(l.now.Add(-grace), fmt.Sprintf("Pod has no readiness gate %s, so unreadyGracePeriodSeconds has no effect",
		v1beta1.ReadinessGateKruisePodReady))
}

func (l lifecycle) grace(since time.Time, message string) (Decision, bool) {
	status := l.request.Status.DeepCopy()
	v1beta1.SetPreRecreateGrace(status, since, message)
	return l.handOver(*status, "unreadyGracePeriodSeconds begins")
}

// handOver writes the hand-over in both forms: first the status, then the annotations for clients of v1alpha1.
func (l lifecycle) handOver(status v1beta1.ContainerRecreateRequestStatus, why string) (Decision, bool) {
	snapshot, acquired, err := v1beta1.WriteHandOff(status)
	if err != nil {
		return Decision{Again: l.nextTimer(), Why: err.Error()}, true
	}
	metadata := l.request.ObjectMeta.DeepCopy()
	for key, value := range map[string]string{v1beta1.AnnotationSyncContainerStatuses: snapshot, v1beta1.AnnotationUnreadyAcquired: acquired} {
		if value != "" && value != metadata.Annotations[key] {
			metav1.SetMetaDataAnnotation(metadata, key, value)
		}
	}
	switch {
	case !equality.Semantic.DeepEqual(status, l.stored):
		return Decision{Status: &status, Why: why}, true
	case !equality.Semantic.DeepEqual(metadata.Annotations, l.request.Annotations):
		return Decision{Meta: metadata, Why: why}, true
	}
	return Decision{}, false
}

// carriedOutByRefit reports whether a refit-daemon or a refit-sidecar carries out the request. If a kruise-daemon has
// replaced the refit-daemon on the node, it completes what the refit-daemon has begun.
func (l lifecycle) carriedOutByRefit() bool {
	accepted := meta.IsStatusConditionTrue(l.request.Status.Conditions, v1beta1.ConditionAccepted)
	return accepted && (!l.kruiseDaemon || l.bySidecar())
}

// bySidecar reports whether a refit-sidecar in the pod carries out the request, or will.
func (l lifecycle) bySidecar() bool {
	accepted := meta.FindStatusCondition(l.request.Status.Conditions, v1beta1.ConditionAccepted)
	return accepted != nil && accepted.Reason == crr.ReasonCarriedOutBySidecar
}

// handOff copies the pod's status into the request for a kruise-daemon, which does not watch pods. It copies a
// container only if another instance than the one at admission runs. It does not compare start times, which are from
// the node's clock.
func (l lifecycle) handOff() (Decision, bool) {
	if l.carriedOutByRefit() {
		return Decision{}, false
	}
	var snapshot []v1beta1.ContainerStatusSnapshot
	for _, container := range l.request.Spec.Containers {
		status := kubelet.StatusOf(l.pod, container.Name)
		if status == nil || status.State.Running == nil || status.ContainerID == container.StatusContext.ContainerID {
			continue
		}
		snapshot = append(snapshot, v1beta1.ContainerStatusSnapshot{
			Name: status.Name, Ready: status.Ready, RestartCount: status.RestartCount, ContainerID: status.ContainerID,
		})
	}
	status := l.request.Status.DeepCopy()
	if len(snapshot) > 0 { // between two instances a container does not run; keep the last snapshot
		status.ContainerStatusSnapshot = snapshot
	}
	return l.handOver(*status, "the pod's status is copied into the request")
}
