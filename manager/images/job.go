package images

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

// startDelay is after how long it is tried again to start pulls, as of a job whose pull secret does not exist or may not be
// read: nothing tells when that has changed. It does not grow, so that the job's deadline is kept.
const startDelay = 10 * time.Second

// overtaken reports whether a write failed because of another writer, which is nothing that a user has to know. Jobs that start
// at the same time create the same copy of a Secret.
func overtaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// jobs carries out what image.PlanJob decides.
type jobs struct{ *api }

// Reconcile implements reconcile.Reconciler.
func (j *jobs) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	var job v1beta1.ImagePullJob
	if err := j.client.Get(ctx, key.NamespacedName, &job); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return ctrl.Result{}, j.removeCopies(ctx)
		}
		return ctrl.Result{}, err
	}
	if job.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	nodes, err := j.selected(ctx, &job)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := image.PlanJob(&job, nodes, j.Clock())
	if decision.Delete {
		return done(j.client.Delete(ctx, &job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}))
	}
	var fault error
	if len(decision.Start) > 0 {
		fault = j.start(ctx, &job, decision.Start)
	}
	if fault != nil && !overtaken(fault) {
		decision.Status.Message = fault.Error()
		if job.Status.Message != decision.Status.Message {
			j.Logger.Warn("pulls of an ImagePullJob not started", "job", key.String(), "err", fault)
		}
		if again := j.Clock().Add(startDelay); decision.Again.IsZero() || again.Before(decision.Again) {
			decision.Again = again
		}
	}
	if !equality.Semantic.DeepEqual(job.Status, decision.Status) {
		changed := job.DeepCopy()
		changed.Status = decision.Status
		if err := j.client.Status().Update(ctx, changed); err != nil {
			return done(fmt.Errorf("write status of ImagePullJob: %w", err))
		}
		changed.Status = decision.Status // what is stored may be less: OpenKruise's CRD drops the conditions
		j.tell(&job, changed, decision.Full)
	}
	if overtaken(fault) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	if decision.Status.CompletionTime != nil {
		return j.later(decision.Again), j.removeCopies(ctx)
	}
	return j.later(decision.Again), nil
}

// tell sends the Events of the end of a job and of NodeImages without room.
func (j *jobs) tell(before, after *v1beta1.ImagePullJob, full string) {
	if full != "" && before.Status.Message != after.Status.Message {
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

// selected are the NodeImages of the nodes that a job selects.
func (j *jobs) selected(ctx context.Context, job *v1beta1.ImagePullJob) ([]*v1beta1.NodeImage, error) {
	var list v1beta1.NodeImageList
	if err := j.client.List(ctx, &list); err != nil {
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
		selector, err := metav1.LabelSelectorAsSelector(&job.Spec.Selector.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("selector of ImagePullJob: %w", err)
		}
		return func(n *v1beta1.NodeImage) bool { return selector.Matches(labels.Set(n.Labels)) }, nil
	case job.Spec.PodSelector != nil:
		selector, err := metav1.LabelSelectorAsSelector(&job.Spec.PodSelector.LabelSelector)
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

// start adds the image to the NodeImages of some nodes.
func (j *jobs) start(ctx context.Context, job *v1beta1.ImagePullJob, nodes []string) error {
	secrets, err := j.copySecrets(ctx, job)
	if err != nil {
		return err
	}
	for _, name := range nodes {
		err := j.write(ctx, name, func(node *v1beta1.NodeImage) bool {
			// The cache had not shown it yet if the job is there already, or if there is no room: then the next look says so.
			return !names(node, job) && image.Request(&node.Spec, &node.Status, job, secrets, j.Clock())
		})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
