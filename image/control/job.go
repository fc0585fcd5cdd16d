package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/jobplan"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/foreign"
)

// startDelay is the delay before another attempt to start pulls, for example if a pull secret of the job does not exist
// or must not be read: there is no event when that changes. It does not grow, so that the job's deadline is met.
const startDelay = 10 * time.Second

// roomDelay is the delay before a job that waits for space checks again if no NodeImage has lost a pull. There may also
// be space because another namespace now uses more than its own.
const roomDelay = time.Minute

// progressInterval is the least time between two writes of the status of a running job. Otherwise a job for a thousand nodes could be
// written a thousand times, and a thousand jobs would delay other namespaces. The start and the end of a job are written immediately.
const progressInterval = time.Second

// maxMessage limits the message of a job or list, in bytes. It may contain errors of many nodes.
const maxMessage = 1024

// jobs applies the decisions of jobplan.Job.
type jobs struct{ *api }

// Reconcile implements reconcile.Reconciler.
func (j *jobs) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	var job v1beta1.ImagePullJob
	if err := j.client.Get(ctx, key.NamespacedName, &job); err != nil {
		if client.IgnoreNotFound(err) == nil {
			j.copied.forget(key.NamespacedName)
			j.progress.forget(key.NamespacedName)
			j.wrote.Forget(key.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if j.wrote.Unseen(key.NamespacedName, job.ResourceVersion) {
		return ctrl.Result{RequeueAfter: conflict.First}, nil // the watch event usually comes earlier
	}
	if job.DeletionTimestamp != nil {
		return done(j.release(ctx, &job))
	}
	var decision jobplan.Decision
	switch nodes, err := j.selected(ctx, &job); {
	case errors.Is(err, foreign.ErrUnreadable):
		decision = jobplan.Unreadable(&job, err, j.Clock())
	case err != nil:
		return ctrl.Result{}, err
	default:
		decision = jobplan.Job(&job, nodes, j.Clock())
	}
	if decision.Delete {
		return done(j.client.Delete(ctx, &job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}))
	}
	var startErr error
	if len(decision.Start) > 0 {
		startErr = j.start(ctx, &job, &decision)
	} else {
		startErr = j.follow(ctx, &job, &decision)
	}
	if startErr != nil && !conflict.Is(startErr) {
		decision.Status.Message = foreign.Shorten(startErr.Error(), maxMessage)
		if job.Status.Message != decision.Status.Message {
			j.Logger.Warn("pulls of an ImagePullJob not started, or not with the newest pull secrets", "job", key.String(), "err", startErr)
		}
		decision.LookAt(j.Clock().Add(startDelay))
	}
	if decision.Full != "" {
		decision.LookAt(j.Clock().Add(roomDelay))
	}
	if !equality.Semantic.DeepEqual(job.Status, decision.Status) {
		if next := j.progress.get(key.NamespacedName).Add(j.interval); decision.Status.CompletionTime == nil && j.Clock().Before(next) {
			decision.LookAt(next)
		} else if err := j.writeStatus(ctx, &job, &decision); err != nil {
			return done(err)
		}
	}
	if conflict.Is(startErr) { // jobs that start at the same time create the same copy of a Secret
		return ctrl.Result{}, startErr
	}
	if job.Status.CompletionTime != nil {
		if err := j.release(ctx, &job); err != nil {
			return done(err)
		}
	}
	return j.later(decision.Again), nil
}

// writeStatus writes the status of a job.
func (j *jobs) writeStatus(ctx context.Context, job *v1beta1.ImagePullJob, decision *jobplan.Decision) error {
	changed, key := job.DeepCopy(), client.ObjectKeyFromObject(job)
	changed.Status = decision.Status
	if err := j.client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("write status of ImagePullJob: %w", err)
	}
	j.wrote.Wrote(key, changed.ResourceVersion)
	j.progress.set(key, j.Clock())
	changed.Status = decision.Status // the stored status may have less: OpenKruise's CRD drops the conditions
	j.sendEvents(job, changed, decision.Full)
	return nil
}

// release removes the finalizer of kruise-manager, which otherwise nobody would remove. The removal of copies of pull
// secrets does not need it.
func (j *jobs) release(ctx context.Context, job *v1beta1.ImagePullJob) error {
	if !slices.Contains(job.Finalizers, v1beta1.FinalizerDeletionProtection) {
		return nil
	}
	changed := job.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == v1beta1.FinalizerDeletionProtection })
	if err := j.client.Patch(ctx, changed, client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("remove finalizer of ImagePullJob: %w", err)
	}
	return nil
}

// sendEvents sends the Events about the end of a job and about NodeImages without space.
func (j *jobs) sendEvents(before, after *v1beta1.ImagePullJob, full string) {
	if full != "" && image.Details(before.Status.Message) != image.Details(after.Status.Message) {
		j.Recorder.Eventf(after, nil, corev1.EventTypeWarning, "NodeImageFull", "Pull", "%s", full)
	}
	if before.Status.CompletionTime != nil || after.Status.CompletionTime == nil {
		return
	}
	for _, c := range after.Status.Conditions {
		kind := corev1.EventTypeNormal
		if c.Type == v1beta1.ConditionPullFailed {
			kind = corev1.EventTypeWarning
		}
		if c.Status == metav1.ConditionTrue {
			j.Recorder.Eventf(after, nil, kind, c.Reason, "Pull", "%d of %d nodes have the image: %s", after.Status.Succeeded, after.Status.Desired, c.Message)
		}
	}
}

// selected returns the NodeImages of the nodes that a job selects.
func (j *jobs) selected(ctx context.Context, job *v1beta1.ImagePullJob) ([]*v1beta1.NodeImage, error) {
	var list v1beta1.NodeImageList
	if err := j.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // they are not changed
		return nil, fmt.Errorf("list NodeImages: %w", err)
	}
	matches, err := j.selector(ctx, job)
	if err != nil {
		return nil, err
	}
	var nodes []*v1beta1.NodeImage
	for i := range list.Items {
		if node := &list.Items[i]; node.DeletionTimestamp == nil && matches(node) {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

func (j *jobs) selector(ctx context.Context, job *v1beta1.ImagePullJob) (func(*v1beta1.NodeImage) bool, error) {
	switch {
	case job.Spec.Selector != nil && len(job.Spec.Selector.Names) > 0:
		named := set(job.Spec.Selector.Names)
		return func(n *v1beta1.NodeImage) bool { return named[n.Name] }, nil
	case job.Spec.Selector != nil:
		selector, err := foreign.Selector(&job.Spec.Selector.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("selector of ImagePullJob: %w", err)
		}
		return func(n *v1beta1.NodeImage) bool { return selector.Matches(labels.Set(n.Labels)) }, nil
	case job.Spec.PodSelector != nil:
		selector, err := foreign.Selector(&job.Spec.PodSelector.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("podSelector of ImagePullJob: %w", err)
		}
		var pods corev1.PodList
		if err := j.client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		var nodes []string
		for i := range pods.Items {
			if phase := pods.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
				nodes = append(nodes, pods.Items[i].Spec.NodeName)
			}
		}
		named := set(nodes)
		return func(n *v1beta1.NodeImage) bool { return named[n.Name] }, nil
	}
	return func(*v1beta1.NodeImage) bool { return true }, nil
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}
