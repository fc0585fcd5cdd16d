package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/control/beside"
	"github.com/refit-project/refit/sidecarset/control/report"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

const (
	parallel  = 8 // number of pods of a SidecarSet that are written concurrently
	lastRetry = 5 * time.Minute
)

// retry says when a failed write to a pod is tried again.
var retry = wait.Backoff{First: time.Second, Last: lastRetry}

// updateAll updates pods. A failed one is retried later and does not delay others.
func (r *reconciler) updateAll(ctx context.Context, s *set, keys []types.NamespacedName) {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, key := range keys {
		group.Go(func() error {
			if err := r.Guard.Do("sidecarset", s.subject(key), func() error { return r.update(ctx, s, key) }); err != nil {
				r.failed(s, key, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the goroutines return no errors
}

// update writes the next step of one pod, decided from its present state.
func (r *reconciler) update(ctx context.Context, s *set, key types.NamespacedName) error {
	pod, err := r.live.Pod(ctx, key.Namespace, key.Name)
	if err != nil {
		return client.IgnoreNotFound(err) // its watch event will follow
	}
	s.mu.Lock()
	uid := s.entry(key).uid
	planned, _ := s.fleet.Get(key)
	s.mu.Unlock()
	if uid != pod.UID || !upgrade.Active(pod) || !slices.Contains(annotation.Names(pod), s.object.Name) {
		return nil
	}
	if planned.State == rollout.NotUpgradable && s.strategy.Recreate && !planned.InFlight {
		return r.evict(ctx, s, pod)
	}
	step, err := s.target.Step(pod, planned.State == rollout.Outdated && !s.strategy.Paused, r.Clock())
	if refused := (*plan.RefusedError)(nil); errors.As(err, &refused) {
		s.refuse(key, refused)
		return r.observeWritten(ctx, s, pod)
	}
	if err == nil && step != nil {
		pod, err = inplace.Write(ctx, r.live, pod, step)
	}
	if err != nil {
		return err
	}
	s.wrote(key, pod)
	return r.observeWritten(ctx, s, pod)
}

// observeWritten observes a pod that has just been read or written.
func (r *reconciler) observeWritten(ctx context.Context, s *set, pod *corev1.Pod) error {
	requests, err := beside.Requests(ctx, r.client, pod)
	if err == nil {
		s.observe(pod, true, nil, requests, r.Clock())
	}
	return err
}

// refuse records why an in-place update is not possible.
func (s *set) refuse(key types.NamespacedName, refused *plan.RefusedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(key)
	e.refused = nil
	for _, refusal := range refused.Refusals {
		e.refused = append(e.refused, refusal.String())
	}
}

// wrote records a pod after a write of its update, and makes older events be ignored.
func (s *set) wrote(key types.NamespacedName, pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entry(key); e.uid == pod.UID {
		e.version, e.failures, e.retryAt, e.updated = pod.ResourceVersion, 0, time.Time{}, true
	}
}

// failed delays the next attempt for the pod.
func (r *reconciler) failed(s *set, key types.NamespacedName, err error) {
	now := r.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, ok := s.fleet.Get(key)
	if !ok {
		return
	}
	e := s.entry(key)
	if apierrors.IsConflict(err) {
		e.retryAt = now.Add(conflict.First) // another client has written to the pod
	} else {
		e.failures++
		e.retryAt = now.Add(retry.After(e.failures))
		r.Logger.Warn("sidecars not updated", "sidecarset", s.object.Name, "pod", key.String(), "err", err, "retry", e.retryAt)
		r.Recorder.Eventf(report.Subject(key, e.uid), s.object, corev1.EventTypeWarning, "SidecarUpdateFailed", "Update", "SidecarSet %s: %s", s.object.Name, report.Short(err))
	}
	pod.RetryAt = e.retryAt
	s.fleet.Set(pod)
	// There will be no event, because the pod was not written.
	e.unfinished, e.due = false, recheck.On(e.retryAt)
	s.put(key, e)
}

// evict makes the pod be recreated by its owner, if its PodDisruptionBudgets allow it.
func (r *reconciler) evict(ctx context.Context, s *set, pod *corev1.Pod) error {
	if metav1.GetControllerOfNoCopy(pod) == nil {
		return fmt.Errorf("evict pod %s: no controller would recreate it", pod.Name)
	}
	if err := r.live.Evict(ctx, pod); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(pod)
	if known, _ := s.fleet.Get(key); known.UID == pod.UID { // otherwise a watch event has already recorded it
		s.fleet.Evicted(key, r.Clock().Add(min(kubelet.GracePeriod(pod.Spec.TerminationGracePeriodSeconds), rollout.LongestEnd)))
		s.recordEviction(key, pod.UID)
	}
	return nil
}
