package upgrade

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

func aborted(pod *corev1.Pod, sidecarSet string) string { return abortedIn(pod)[sidecarSet] }

func abortedIn(pod *corev1.Pod) map[string]string {
	var hashes map[string]string
	if foreign.JSON(pod.Annotations[v1beta1.AnnotationSidecarSetAborted], &hashes) != nil {
		return nil
	}
	return hashes
}

func version(pod *corev1.Pod, container string) string {
	return pod.Annotations[v1beta1.PrefixSidecarSetVersion+container]
}

func alternative(pod *corev1.Pod, container string) string {
	return pod.Annotations[v1beta1.PrefixSidecarSetVersionAlt+container]
}

// takenOver reports whether a new container, which runs its image, has taken over.
func (p *progress) takenOver(s *sidecar, container string) bool {
	if !ready(p.pod, container) {
		return false
	}
	completion := s.UpgradeStrategy.Completion
	if completion == nil {
		return true
	}
	switch completion.Type {
	case v1beta1.CompletionCondition:
		c := kubelet.Condition(&p.pod.Status, corev1.PodConditionType(completion.ConditionType))
		return c != nil && c.Status == corev1.ConditionTrue
	case v1beta1.CompletionAnnotation:
		return p.pod.Annotations[completion.Annotation] == version(p.pod, container)
	default:
		return true
	}
}

// deadline returns until when the new container must have taken over, and false if there is no limit.
func deadline(p *progress, s *sidecar) (time.Time, bool) {
	completion := s.UpgradeStrategy.Completion
	if p.record == nil || completion == nil || completion.TimeoutSeconds == nil {
		return time.Time{}, false
	}
	return p.record.State.UpdateTimestamp.Add(time.Duration(*completion.TimeoutSeconds) * time.Second), true
}
