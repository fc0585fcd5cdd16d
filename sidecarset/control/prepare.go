package control

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/sidecarset/control/history"
	"github.com/refit-project/refit/sidecarset/control/prepull"
	"github.com/refit-project/refit/sidecarset/control/report"
)

// revisions keeps the ControllerRevisions up to date with the spec, and returns the name of the newest one and all
// revisions.
func (r *reconciler) revisions(ctx context.Context, object *v1beta1.SidecarSet) (latest string, all []*appsv1.ControllerRevision, err error) {
	var used func(string) bool
	if s := r.find(object.Name); s != nil {
		revisions := map[string]bool{}
		s.mu.Lock()
		for _, e := range s.pods {
			revisions[e.revision] = true
		}
		s.mu.Unlock()
		used = func(name string) bool { return revisions[name] }
	}
	keeper := &history.Keeper{Client: r.client, Live: r.Live, Namespace: r.Namespace, OpenKruise: r.OpenKruise, Written: r.written, Logger: r.Logger}
	return keeper.Keep(ctx, object, used)
}

// prePull pulls the new images to the nodes of the pods before the first container is stopped. It returns when to check
// again, or zero if the update can proceed. Failed pulls and refused ImagePullJobs do not stop the update:
// maxUnavailable limits their effect.
func (r *reconciler) prePull(ctx context.Context, s *set) (recheck.At, error) {
	if !r.PrePull || s.object.Spec.UpdateStrategy.PrePullPolicy != v1beta1.PrePullAlways || s.pulled {
		return recheck.At{}, nil
	}
	puller := &prepull.Puller{Client: r.client, Namespace: r.Namespace, Clock: r.Clock, Written: r.written}
	done, err := puller.Pull(ctx, s.object, s.target.Revision, s.target.Images(), s.outdated)
	if err != nil {
		r.Recorder.Eventf(s.object, nil, corev1.EventTypeWarning, "PrePullFailed", "PrePull", "%s", report.Short(err))
	}
	s.pulled = done
	switch {
	case done:
		return recheck.At{}, nil
	case err != nil:
		return recheck.At{}, err
	}
	return recheck.On(r.Clock().Add(10 * time.Second)), nil // usually the watch event of the job comes earlier
}

// outdated returns all pods that need an update.
func (s *set) outdated() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Outdated()
}
