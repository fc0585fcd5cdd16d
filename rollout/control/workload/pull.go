package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/prepull"
	"github.com/refit-project/refit/rollout/workload"
)

// pulls reads, from the cache, what is known about pulls before an update, as long as the update waits for them, and later if pods
// were created during the update.
func (r *reconciler) pulls(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, w *workload.Workload, pods []*corev1.Pod) (workload.Pulls, error) {
	pulls := workload.Pulls{}
	update := policy.Status.Update
	pulled := update != nil && update.PulledRevision == w.Revision
	late := func(pod *corev1.Pod) bool { return workload.CreatedDuring(update, pod) }
	switch {
	case !r.PrePull:
		pulls.Off = "refit-manager runs with --images=false"
		return pulls, nil
	case policy.Spec.PrePullPolicy == v1alpha1.PrePullNever, idle(policy, w), pulled && !slices.ContainsFunc(pods, late):
		return pulls, nil
	case pulled:
		if pulls.Off = r.refusedPulls(policy, w.Revision); pulls.Off != "" {
			return pulls, nil
		}
	}
	var jobs v1beta1.ImagePullJobList
	if err := r.client.List(ctx, &jobs, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return pulls, fmt.Errorf("list ImagePullJobs: %w", err)
	}
	pulls.Jobs, pulls.Nodes = pointers(jobs.Items), map[string]bool{}
	for _, namespace := range []string{r.Daemons.Refit, r.Daemons.Kruise} {
		var pods corev1.PodList
		if err := r.client.List(ctx, &pods, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return pulls, fmt.Errorf("list daemons: %w", err)
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; r.Daemons.Has(pod) && cache.IsReady(pod) {
				pulls.Nodes[pod.Spec.NodeName] = true
			}
		}
	}
	return pulls, nil
}

// idle reports whether all pods had the present template before.
func idle(policy *v1alpha1.InPlaceUpdatePolicy, w *workload.Workload) bool {
	c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	return c != nil && c.Reason == v1alpha1.ReasonCompleted && policy.Status.Update == nil && policy.Status.ObservedTargetGeneration == w.Generation && !w.Held
}

// errSecret means that a pull secret cannot be read.
var errSecret = errors.New("pull secret cannot be read")

// refusal says why no ImagePullJobs can be created for pods that are created during the update to a revision.
type refusal struct{ revision, why string }

// refusedPulls returns why no ImagePullJobs can be created for later pods of an update, or "".
func (r *reconciler) refusedPulls(policy *v1alpha1.InPlaceUpdatePolicy, revision string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[client.ObjectKeyFromObject(policy)]; s != nil && s.refused.revision == revision {
		return s.refused.why
	}
	return ""
}

// refusePulls notes that an ImagePullJob for later pods was refused: they are updated without it.
func (r *reconciler) refusePulls(policy *v1alpha1.InPlaceUpdatePolicy, refused refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[client.ObjectKeyFromObject(policy)]; s != nil {
		s.refused = refused
	}
}

// pull creates an ImagePullJob. If that is not possible, the update continues without it.
func (r *reconciler) pull(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision, job *v1beta1.ImagePullJob) error {
	err := r.readable(ctx, job)
	if err == nil {
		err = r.wrote("imagepulljobs", "create ImagePullJob "+job.Name, client.IgnoreAlreadyExists(r.client.Create(ctx, job)))
	}
	if err == nil || !prepull.Refused(err) && !errors.Is(err, errSecret) {
		return err
	}
	if revision := decision.Status.UpdateRevision; decision.Status.Update.PulledRevision == revision {
		r.refusePulls(policy, refusal{revision, err.Error()})
		return nil
	}
	decision.Status.Update.PulledRevision, decision.NotPulled = decision.Status.UpdateRevision, err.Error()
	return r.writeStatus(ctx, policy, decision)
}

// readable checks that refit-manager may read the pull secrets of a job, and leaves out those that do not exist, as kubelet does.
func (r *reconciler) readable(ctx context.Context, job *v1beta1.ImagePullJob) error {
	secrets := job.Spec.PullSecrets
	job.Spec.PullSecrets = nil
	for _, name := range secrets {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, secret); {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("%w: %s: bind the ClusterRole refit-pull-secret-reader in namespace %s (docs/images.md)", errSecret, name, job.Namespace)
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read pull secret %s: %w", name, err)
		default:
			job.Spec.PullSecrets = append(job.Spec.PullSecrets, name)
		}
	}
	return nil
}
