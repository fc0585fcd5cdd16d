package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/manager/sidecarset/beside"
	"github.com/refit-project/refit/manager/sidecarset/podapi"
	"github.com/refit-project/refit/manager/sidecarset/report"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/rollout"
)

const (
	parallel   = 8 // pods of a SidecarSet that are written at a time
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// updateAll updates pods. One that fails is tried again later and holds up no other.
func (r *reconciler) updateAll(ctx context.Context, s *set, keys []types.NamespacedName) {
	limit := make(chan struct{}, parallel)
	var group sync.WaitGroup
	for _, key := range keys {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			if err := r.update(ctx, s, key); err != nil {
				r.failed(s, key, err)
			}
		})
	}
	group.Wait()
}

// update writes the next step of one pod, decided from what the pod is now.
func (r *reconciler) update(ctx context.Context, s *set, key types.NamespacedName) error {
	pod, err := r.live.Pod(ctx, key.Namespace, key.Name)
	if err != nil {
		return client.IgnoreNotFound(err) // its watch event comes
	}
	s.mu.Lock()
	k, planned := s.known[key], rollout.Pod{}
	if k != nil {
		planned, _ = s.fleet.Get(key)
	}
	s.mu.Unlock()
	if k == nil || k.uid != pod.UID || pod.DeletionTimestamp != nil || !slices.Contains(annotation.Names(pod), s.object.Name) {
		return nil
	}
	if planned.State == rollout.NotUpgradable && s.strategy.Recreate && !planned.InFlight {
		return r.evict(ctx, s, pod)
	}
	step, err := s.step(pod, planned.State, r.Clock())
	if refused := (*plan.RefusedError)(nil); errors.As(err, &refused) {
		s.refuse(key, refused)
		return r.show(ctx, s, pod)
	}
	if err == nil && step != nil {
		pod, err = inplace.Apply(ctx, r.live, pod, step)
	}
	if err != nil {
		return err
	}
	s.wrote(key, pod)
	return r.show(ctx, s, pod)
}

// show takes in a pod that has been read or written just now.
func (r *reconciler) show(ctx context.Context, s *set, pod *corev1.Pod) error {
	requests, err := beside.Requests(ctx, r.client, pod)
	if err == nil {
		s.observe(pod, true, nil, requests, r.Clock())
	}
	return err
}

// step goes on with what was begun; otherwise it begins, if it is the pod's turn.
func (s *set) step(pod *corev1.Pod, state rollout.State, now time.Time) (*inplace.Step, error) {
	step, err := s.target.Continue(pod, now)
	if step != nil || err != nil || state != rollout.Outdated || s.strategy.Paused {
		return step, err
	}
	return s.target.Begin(pod, now)
}

// refuse keeps why an update is not possible in place.
func (s *set) refuse(key types.NamespacedName, refused *plan.RefusedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[key]; k != nil {
		k.refused = nil
		for _, refusal := range refused.Refusals {
			k.refused = append(k.refused, refusal.String())
		}
	}
}

// wrote notes a write, so that events from before it are dropped.
func (s *set) wrote(key types.NamespacedName, pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[key]; k != nil && k.uid == pod.UID {
		k.version, k.failures, k.retryAt = pod.ResourceVersion, 0, time.Time{}
	}
}

// failed lets the pod wait for its next try.
func (r *reconciler) failed(s *set, key types.NamespacedName, err error) {
	now := r.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, ok := s.fleet.Get(key)
	k := s.known[key]
	if !ok || k == nil {
		return
	}
	if apierrors.IsConflict(err) {
		k.retryAt = now.Add(conflictDelay) // another client has written to the pod
	} else {
		k.retryAt = now.Add(min(firstRetry<<min(k.failures, 16), lastRetry))
		k.failures++
		r.Logger.Warn("sidecars not updated", "sidecarset", s.object.Name, "pod", key.String(), "err", err, "retry", k.retryAt)
		r.Recorder.Eventf(report.Subject(key, k.uid), s.object, corev1.EventTypeWarning, "SidecarUpdateFailed", "Update", "SidecarSet %s: %s", s.object.Name, report.Short(err))
	}
	pod.RetryAt = k.retryAt
	s.fleet.Set(pod)
	// A pod that is not written to causes no event.
	delete(s.unfinished, key)
	s.due[key] = k.retryAt
}

// evict has the pod recreated by its owner, within its PodDisruptionBudgets.
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
	if known, _ := s.fleet.Get(key); known.UID == pod.UID { // otherwise its event has come before, and told so
		s.fleet.Evicted(key, r.Clock().Add(min(podapi.Grace(pod), rollout.LongestEnd)))
		s.evicted(key, pod.UID)
	}
	return nil
}
