package rollout

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/sidecarset/history"
	"github.com/refit-project/refit/manager/sidecarset/prepull"
	"github.com/refit-project/refit/manager/sidecarset/report"
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
// again; zero if the update can go on. Failed pulls do not hold it up, and neither do refused ImagePullJobs: maxUnavailable does.
func (r *reconciler) prePull(ctx context.Context, s *set) (time.Time, error) {
	if !r.PrePull || s.object.Spec.UpdateStrategy.PrePullPolicy != v1beta1.PrePullAlways || s.pulled {
		return time.Time{}, nil
	}
	puller := &prepull.Puller{Client: r.client, Namespace: r.Namespace, Clock: r.Clock, Written: r.written}
	done, err := puller.Pull(ctx, s.object, s.target.Revision, s.target.Images(), s.outdated)
	if err != nil {
		r.Recorder.Eventf(s.object, nil, corev1.EventTypeWarning, "PrePullFailed", "PrePull", "%s", report.Short(err))
	}
	s.pulled = done
	switch {
	case done:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	}
	return r.Clock().Add(10 * time.Second), nil // the job's watch event comes sooner
}

// outdated are all pods that are to be updated.
func (s *set) outdated() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Outdated()
}
