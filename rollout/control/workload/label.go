package workload

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/rollout/workload"
)

const (
	// labelLasts is the time after which a label that is missing counts as removed by a single write.
	labelLasts = time.Minute
	// orphansInterval is the time between searches for workloads with the label and without a policy.
	orphansInterval = 10 * time.Minute
)

// labelPace limits how often the label refit.dev/hold-uid of a workload is set. A controller that owns the workload may remove it in
// answer to each write, and admission may refuse it or take it out. The time between two writes is doubled each time, up to lastLook.
type labelPace struct {
	uid     types.UID // of the workload
	at      time.Time // of the last write
	wait    time.Duration
	missing bool // the label was missing during wait
}

// limit removes the action that sets the label from a decision if it is too early for it.
func (p *labelPace) limit(decision *workload.Decision, w *workload.Workload, now time.Time) {
	i := slices.IndexFunc(decision.Actions, func(a workload.Action) bool { return a.Kind == workload.ActionHoldLabel && a.Label != "" })
	if i < 0 {
		return
	}
	if p.uid != w.UID {
		*p = labelPace{uid: w.UID}
	}
	if next := p.at.Add(p.wait); now.Before(next) {
		decision.Actions = slices.Delete(decision.Actions, i, i+1)
		decision.Again = decision.Again.Or(next)
		p.missing = true
		return
	}
	if !p.missing && now.Sub(p.at) >= labelLasts {
		p.wait = 0
	}
	p.at, p.wait, p.missing = now, min(max(2*p.wait, firstLook), lastLook), false
}

// unlabelOrphans removes the label from workloads without a policy until the context ends. Nobody would release them if the API server
// held them: the finalizer of their policy was removed by hand, or another version of refit-manager has removed it.
func (r *reconciler) unlabelOrphans(ctx context.Context) error {
	ticker := time.NewTicker(orphansInterval)
	defer ticker.Stop()
	for {
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			r.unlabelOrphansOf(ctx, kind)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (r *reconciler) unlabelOrphansOf(ctx context.Context, kind string) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(appsKind(kind + "List"))
	if err := r.client.List(ctx, list, client.HasLabels{v1alpha1.LabelHoldUID}); err != nil {
		r.Logger.Error("list labelled workloads", "kind", kind, "err", err)
		return
	}
	for i := range list.Items {
		object := &list.Items[i]
		err := r.Guard.Do("inplaceupdatepolicy", guard.Of(object), func() error { return r.unlabelOrphan(ctx, kind, object) })
		if client.IgnoreNotFound(err) != nil && !conflict.Is(err) {
			r.Logger.Error("remove label from a workload without an InPlaceUpdatePolicy", "kind", kind, "workload", object.Namespace+"/"+object.Name, "err", err)
		}
	}
}

// unlabelOrphan removes the label from a workload if the cache has no policy of it. If there is one that the cache does not show yet, its
// reconciliation sets the label again.
func (r *reconciler) unlabelOrphan(ctx context.Context, kind string, object *metav1.PartialObjectMetadata) error {
	policies, err := r.sameTarget(ctx, object.Namespace, kind, object.Name)
	if err != nil || len(policies) > 0 {
		return err
	}
	w := unread(kind, object)
	err = r.client.Patch(ctx, named(workload.NewObject(kind), w.Namespace, w.Name), client.RawPatch(types.MergePatchType, must.JSON(w.HoldLabel(""))))
	if err == nil {
		r.Logger.Info("label removed from a workload without an InPlaceUpdatePolicy", "label", v1alpha1.LabelHoldUID, "kind", kind, "workload", w.Namespace+"/"+w.Name)
	}
	return r.wrote("workloads", "remove label "+v1alpha1.LabelHoldUID+" of "+kind, err)
}
