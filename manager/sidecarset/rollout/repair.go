package rollout

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/cache"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/missed"
)

// missed is why a pod was not injected; nil if it was.
func (r *reconciler) missed(ctx context.Context, s *set, pod *corev1.Pod) (*missed.Pod, error) {
	if slices.Contains(annotation.Names(pod), s.object.Name) {
		return nil, nil
	}
	labels, err := r.namespaceLabels(ctx, pod.Namespace)
	if err != nil {
		return nil, err
	}
	disabled := pod.Namespace == metav1.NamespaceSystem || pod.Namespace == r.Namespace || labels[v1beta1.LabelSidecarInjection] == "disabled"
	why := missed.Judge(pod, s.object, cache.IsReady(pod), disabled)
	return &why, nil
}

// repair evicts a pod that was not injected, if the SidecarSet asks for it and it is time. It returns when to look again.
func (r *reconciler) repair(ctx context.Context, s *set) (time.Time, error) {
	strategy := &s.object.Spec.InjectionStrategy
	if strategy.RepairPolicy != v1beta1.RepairEvict || !choice.Active(s.object) || strategy.Engine == v1beta1.EnginePolicy {
		return time.Time{}, nil
	}
	now := r.Clock()
	s.mu.Lock()
	s.adopt(false)
	key, found, again := s.repair.Next(s.notInjected, s.workloads(), now)
	chosen := s.notInjected[key]
	s.mu.Unlock()
	if !found {
		return again, nil
	}
	pod, err := r.Pod(ctx, key.Namespace, key.Name)
	if err != nil {
		return time.Time{}, client.IgnoreNotFound(err) // its watch event comes
	}
	if why, err := r.missed(ctx, s, pod); err != nil || why == nil || why.Reason != chosen.Reason || pod.DeletionTimestamp != nil {
		return now.Add(conflictDelay), err // another pod has come meanwhile
	}
	switch err := r.evictPod(ctx, pod); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return now.Add(conflictDelay), nil
	case err != nil:
		r.Logger.Warn("pod without sidecars not evicted", "sidecarset", s.object.Name, "pod", key.String(), "err", err)
		r.Recorder.Eventf(subject(pod), s.object, corev1.EventTypeWarning, "RepairFailed", "Repair", "SidecarSet %s: %s", s.object.Name, short(err))
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.repair.Refused(now), nil
	}
	r.Recorder.Eventf(subject(pod), s.object, corev1.EventTypeNormal, "EvictedForInjection", "Repair", "SidecarSet %s was not injected: %s", s.object.Name, chosen.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notInjected[key] = chosen
	s.repair.Evicted(key, pod.UID, s.notInjected, s.workloads()(chosen.Workload), now.Add(grace(pod)))
	s.evicted(key, pod.UID)
	delete(s.notInjected, key)
	return now.Add(gather), nil
}

// workloads counts the pods of workloads, injected or not. The caller holds the lock.
func (s *set) workloads() func(string) missed.Workload {
	return missed.Workloads(s.notInjected, s.fleet.Workload)
}

// subject is the pod of an Event.
func subject(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
}
