package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/wording"
)

// feature is a feature of refit-manager with the objects that only it processes.
type feature struct {
	flag  string // of refit-manager, which turns it off with false
	value string // in manager.features of the chart
	// kruise says that kruise-manager processes the objects, if it runs.
	kruise bool
	kinds  []processed
}

// processed is a kind of objects.
type processed struct {
	one, more string
	list      client.ObjectList
	// open reports whether an object is to be processed.
	open func(client.Object) bool
}

func always(client.Object) bool { return true }

// features returns the features that can be turned off, with the kinds that nobody processes without them.
func features() []feature {
	return []feature{
		{"container-recreate-requests", "containerRecreateRequests", true, []processed{{"ContainerRecreateRequest", "ContainerRecreateRequests", &v1beta1.ContainerRecreateRequestList{}, func(o client.Object) bool {
			return o.(*v1beta1.ContainerRecreateRequest).Status.CompletionTime == nil
		}}}},
		{"pod-probes", "podProbes", true, []processed{{"PodProbeMarker", "PodProbeMarkers", &v1beta1.PodProbeMarkerList{}, always}}},
		{"images", "images", true, []processed{{"ImagePullJob", "ImagePullJobs", &v1beta1.ImagePullJobList{}, func(o client.Object) bool {
			return o.(*v1beta1.ImagePullJob).Status.CompletionTime == nil
		}}, {"ImageListPullJob", "ImageListPullJobs", &v1beta1.ImageListPullJobList{}, func(o client.Object) bool {
			return o.(*v1beta1.ImageListPullJob).Status.CompletionTime == nil
		}}}},
		{"sidecar-sets", "sidecarSets", true, []processed{{"SidecarSet", "SidecarSets", &v1beta1.SidecarSetList{}, always}}},
		{"restart-rollouts", "restartRollouts", false, []processed{{"RestartRollout", "RestartRollouts", &v1alpha1.RestartRolloutList{}, func(o client.Object) bool {
			return o.(*v1alpha1.RestartRollout).Status.CompletionTime == nil
		}}, {"RestartSchedule", "RestartSchedules", &v1alpha1.RestartScheduleList{}, func(o client.Object) bool {
			return !o.(*v1alpha1.RestartSchedule).Spec.Suspend
		}}}},
		{"in-place-updates", "inPlaceUpdates", false, []processed{{"InPlaceUpdatePolicy", "InPlaceUpdatePolicies", &v1alpha1.InPlaceUpdatePolicyList{}, always}}},
	}
}

// off reports whether refit-manager runs without a feature.
func (e *examiner) off(flag string) bool {
	return slices.Contains(e.deployment.Spec.Template.Spec.Containers[0].Args, "--"+flag+"=false")
}

// features checks that there are no objects of features that are turned off: they stay as they are.
func (e *examiner) features(ctx context.Context) []Finding {
	switch {
	case e.deployment == nil && e.lookErr != nil:
		return e.unseen()
	case e.deployment == nil:
		return one(Skipped, "there is no refit-manager")
	}
	kruise, err := e.kruiseManager(ctx)
	kruise = kruise || err != nil // it is not known, if the user may not read Deployments
	var findings []Finding
	var off []string
	for _, f := range features() {
		if !e.off(f.flag) {
			continue
		}
		off = append(off, f.value)
		if f.kruise && kruise {
			continue
		}
		for _, kind := range f.kinds {
			findings = append(findings, e.unprocessed(ctx, &f, kind)...)
		}
	}
	switch {
	case len(findings) > 0:
		return findings
	case len(off) > 0:
		return one(OK, "turned off, and not needed: %s", strings.Join(off, ", "))
	}
	return one(OK, "all are turned on")
}

// unprocessed returns a finding if there are objects of a kind that nobody processes.
func (e *examiner) unprocessed(ctx context.Context, f *feature, kind processed) []Finding {
	switch err := e.API.List(ctx, kind.list); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return unread(kind.more, err)
	}
	items, err := meta.ExtractList(kind.list)
	if err != nil {
		return one(Failed, "read %s: %v", kind.more, err)
	}
	var open []string
	for _, item := range items {
		if object := item.(client.Object); kind.open(object) {
			open = append(open, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
		}
	}
	if len(open) == 0 {
		return nil
	}
	count := wording.Count(len(open), kind.one, kind.more)
	return []Finding{{Result: Failed, Message: fmt.Sprintf("nothing processes %s, as %s: refit-manager has --%s=false (manager.features.%s of the chart)", count, open[0], f.flag, f.value)}}
}
