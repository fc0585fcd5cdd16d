package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/sidecarset/status"
)

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1beta1.SidecarSet{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil || object.DeletionTimestamp != nil {
		if err == nil || apierrors.IsNotFound(err) {
			r.setState(request.Name, nil) // containers stay in their pods; revisions are deleted through their owner references
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	s, err := r.current(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	again, updateErr := r.updateDue(ctx, s)
	later, err := r.report(ctx, s, object)
	again, err = again.Or(later.Time), errors.Join(updateErr, err)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again.In(r.Clock(), gather)}, nil
}

// current returns the state of the SidecarSet. It computes the state again if the spec has changed.
func (r *reconciler) current(ctx context.Context, object *v1beta1.SidecarSet) (*set, error) {
	before := r.find(object.Name)
	if before != nil && before.object.UID == object.UID && before.object.Generation == object.Generation && before.complete &&
		equality.Semantic.DeepEqual(before.object.Labels, object.Labels) && before.strategy.Halted == status.Paused(object, before.target.Revision) {
		return before, nil
	}
	latest, history, err := r.revisions(ctx, object)
	if err != nil {
		return nil, err
	}
	s, err := newSet(object, latest, history)
	if err != nil {
		return nil, fmt.Errorf("read SidecarSet %s: %w", object.Name, err)
	}
	if before != nil && before.object.UID == object.UID {
		s.inherit(before)
	}
	r.setState(object.Name, s) // from now on it receives events
	err = r.observeAll(ctx, s)
	s.complete = err == nil
	return s, err
}

// updateDue updates the pods whose turn it is, and returns when to run again.
func (r *reconciler) updateDue(ctx context.Context, s *set) (recheck.At, error) {
	r.judgeDue(ctx, s)
	selection, updateErr := r.choose(ctx, s, false)
	s.mu.Lock()
	var started []types.NamespacedName
	for key, e := range s.pending {
		if e.unfinished {
			started = append(started, key)
		}
	}
	s.mu.Unlock()
	if len(selection.Pods) > 0 {
		var wait recheck.At
		if wait, updateErr = r.prePull(ctx, s); updateErr == nil && wait.IsZero() {
			updateErr = r.refresh(ctx, s)
		}
		if updateErr == nil && wait.IsZero() {
			selection, updateErr = r.choose(ctx, s, true)
		} else {
			selection.Pods, selection.Again = nil, selection.Again.Or(wait.Time) // updates in progress continue
		}
	}
	chosen := slices.DeleteFunc(selection.Pods, func(key types.NamespacedName) bool { return slices.Contains(started, key) })
	r.updateAll(ctx, s, append(started, chosen...))
	r.mark(ctx, s)
	r.reportUnreadable(s)
	again, err := r.repair(ctx, s)
	return selection.Again.Or(again.Time, s.nextDue().Time), errors.Join(updateErr, err)
}

// judgeDue evaluates pods again whose evaluation depends on the time.
func (r *reconciler) judgeDue(ctx context.Context, s *set) {
	now := r.Clock()
	s.mu.Lock()
	var keys []types.NamespacedName
	for key, e := range s.pending {
		if e.due.Passed(now) {
			keys = append(keys, key)
			e.due = recheck.At{}
			s.put(key, e)
		}
	}
	s.mu.Unlock()
	for _, key := range keys {
		var pod corev1.Pod
		if err := r.client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); err == nil {
			if _, err := r.observe(ctx, s, &pod); err != nil {
				r.Logger.Error("pod not observed", "pod", key.String(), "err", err)
			}
		}
	}
}

func (s *set) nextDue() (next recheck.At) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.pending {
		next = next.Or(e.due.Time)
	}
	return next
}

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, s *set, object *v1beta1.SidecarSet) (recheck.At, error) {
	s.mu.Lock()
	observed := &status.Observed{
		Counts: s.fleet.Counts(), NotInjected: count(s.notInjected()), Revision: s.target.Revision, CollisionCount: s.object.Status.CollisionCount,
		Held: s.held, Holders: s.holders, Disruption: s.disruption, Example: status.Example(s.problems(true), s.problems(false), s.notInjected()),
	}
	observed.Evicted, observed.Evictions, observed.Leaving = s.evictions(r.Clock())
	s.mu.Unlock()
	return r.reporter.Write(ctx, object, observed, &s.reported)
}
