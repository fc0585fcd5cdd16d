package history_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// updates begins the update of a sidecar by its SidecarSet, or by a user.
func (s *shop) updates(seconds float64, who, uid, container string) {
	s.t.Helper()
	s.unrecorded(uid, func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			if c := &p.Spec.Containers[i]; c.Name == container {
				c.Image += "+"
			}
		}
	})
	s.write(seconds, ref{"patch", who, "pods", "", "chaos", uid}, 200, s.pods[uid])
}

// takesBack gives a sidecar the image that it had before its update, which kubelet has not seen.
func (s *shop) takesBack(seconds float64, uid, container string) {
	s.t.Helper()
	s.unrecorded(uid, func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			if c := &p.Spec.Containers[i]; c.Name == container {
				c.Image = strings.TrimSuffix(c.Image, "+")
			}
		}
		p.Generation++
	})
	s.write(seconds, ref{"patch", managerUser, "pods", "", "chaos", uid}, 200, s.pods[uid])
	s.unrecorded(uid, func(p *corev1.Pod) { p.Status.ObservedGeneration = p.Generation })
}

func (s *shop) evicts(seconds float64, uid string) {
	s.t.Helper()
	s.write(seconds, ref{"create", managerUser, "pods", "eviction", "chaos", uid}, 201, nil)
	s.unrecorded(uid, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(at(seconds + grace))) })
	s.shows(seconds+0.01, uid, func(p *corev1.Pod) { readiness(p, corev1.ConditionFalse) })
}

// deletes is a user's deletion of a pod, which then ends.
func (s *shop) deletes(seconds float64, uid string) {
	s.t.Helper()
	s.unrecorded(uid, func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(at(seconds+grace))), new(int64(grace))
	})
	s.write(seconds, ref{"delete", user, "pods", "", "chaos", uid}, 200, s.pods[uid])
	s.shows(seconds+0.01, uid, func(p *corev1.Pod) { readiness(p, corev1.ConditionFalse) })
}
