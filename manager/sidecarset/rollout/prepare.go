package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/sidecarset/history"
	"github.com/refit-project/refit/manager/sidecarset/prepull"
)

// revisions makes the newest ControllerRevision that of the spec, and returns its name and all revisions.
func (r *reconciler) revisions(ctx context.Context, object *v1beta1.SidecarSet) (latest string, all []*appsv1.ControllerRevision, err error) {
	var used func(string) bool
	if s := r.find(object.Name); s != nil {
		revisions := map[string]bool{}
		s.mu.Lock()
		for _, k := range s.known {
			revisions[k.revision] = true
		}
		s.mu.Unlock()
		used = func(name string) bool { return revisions[name] }
	}
	keeper := &history.Keeper{Client: r.client, Live: r.Live, Namespace: r.Namespace, Written: r.written}
	return keeper.Keep(ctx, object, used)
}

// prePull has the new images pulled on the nodes of the pods before the first container is stopped. It returns when to look
// again; zero if the update can go on. Failed pulls do not hold it up: maxUnavailable does.
func (r *reconciler) prePull(ctx context.Context, s *set) (time.Time, error) {
	if !r.PrePull || s.object.Spec.UpdateStrategy.PrePullPolicy != v1beta1.PrePullAlways || s.pulled {
		return time.Time{}, nil
	}
	puller := &prepull.Puller{Client: r.client, Namespace: r.Namespace, Clock: r.Clock, Written: r.written}
	var unfinished bool
	var faults []error
	for _, image := range s.target.Images() {
		done, err := puller.Pull(ctx, s.object, s.target.Revision, image, func(ctx context.Context) ([]string, error) { return r.nodes(ctx, s) })
		unfinished = unfinished || !done
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return time.Time{}, err
	}
	if !unfinished {
		s.pulled = true
		return time.Time{}, nil
	}
	return r.Clock().Add(10 * time.Second), nil // the job's watch event comes sooner
}

// nodes of all pods that are to be updated, sorted.
func (r *reconciler) nodes(ctx context.Context, s *set) ([]string, error) {
	s.mu.Lock()
	keys := s.fleet.Outdated()
	s.mu.Unlock()
	var nodes []string
	for _, key := range keys {
		var pod corev1.Pod
		if err := r.client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("get pod %s: %w", key, err)
		}
		if pod.Spec.NodeName != "" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}
