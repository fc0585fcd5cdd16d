package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/podapi"
	"github.com/refit-project/refit/rollout/workload"
)

// writeStatus writes a changed status, and sends Events about changes of the condition Progressing and about pods that have
// failed.
func (r *reconciler) writeStatus(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision) error {
	r.metrics.count(policy, &decision.Status)
	if equality.Semantic.DeepEqual(policy.Status, decision.Status) {
		r.reportNotPulled(policy, decision)
		return nil
	}
	before := policy.Status.DeepCopy()
	policy.Status = *decision.Status.DeepCopy() // an action may change the decision
	if err := r.wrote("inplaceupdatepolicies", "write status of InPlaceUpdatePolicy", r.client.Status().Update(ctx, policy)); err != nil {
		return err
	}
	policy.Status = *decision.Status.DeepCopy() // the API server returns it without what its schema does not have
	r.reportNotPulled(policy, decision)
	r.reportFailures(ctx, policy, before)
	r.reportProgress(policy, before)
	if key := decision.NothingRestarted; key != "" {
		r.Recorder.Eventf(policy, nil, corev1.EventTypeNormal, "NothingRestarted", "Update",
			"no container was restarted: the template has changed only labels and annotations, for example %s, and no environment variable refers to them", key)
	}
	return nil
}

// reportNotPulled reports that pods are updated without a pull before.
func (r *reconciler) reportNotPulled(policy *v1alpha1.InPlaceUpdatePolicy, decision *workload.Decision) {
	if decision.NotPulled != "" {
		r.Recorder.Eventf(policy, nil, corev1.EventTypeWarning, "PrePullSkipped", "PrePull", "pods are updated although images were not pulled on all nodes before: %s", foreign.Shorten(decision.NotPulled, maxEvent))
	}
}

// reportProgress reports a new reason of the condition Progressing.
func (r *reconciler) reportProgress(policy *v1alpha1.InPlaceUpdatePolicy, before *v1alpha1.InPlaceUpdatePolicyStatus) {
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionProgressing)
	is := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
		return
	}
	r.metrics.progress(policy, before, was, is, r.Clock())
	kind := corev1.EventTypeNormal
	if is.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(policy, nil, kind, is.Reason, "Update", "%s", is.Message)
	r.Logger.Info("InPlaceUpdatePolicy", "policy", policy.Namespace+"/"+policy.Name, "reason", is.Reason, "message", is.Message)
}

// reportFailures sends an Event on each pod that has failed since the status before. The status has at most ten of them.
func (r *reconciler) reportFailures(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, before *v1alpha1.InPlaceUpdatePolicyStatus) {
	known := map[string]bool{}
	for _, failure := range before.Failures {
		known[failure.Pod+" "+failure.Reason] = true
	}
	for _, failure := range policy.Status.Failures {
		var pod corev1.Pod
		key := client.ObjectKey{Namespace: policy.Namespace, Name: failure.Pod}
		if known[failure.Pod+" "+failure.Reason] || r.client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy) != nil {
			continue // it is gone, or reported in the status only
		}
		r.Recorder.Eventf(&pod, policy, corev1.EventTypeWarning, "InPlaceUpdateFailed", "Update", "InPlaceUpdatePolicy %s: %s: %s",
			policy.Name, failure.Reason, foreign.Shorten(failure.Message, maxEvent))
	}
}

func (r *reconciler) podAPI() *podapi.API {
	return &podapi.API{Client: r.client, Live: r.Live, Written: r.wrote}
}

// wrote counts a write, and wraps its error with what was being done.
func (r *reconciler) wrote(resource, doing string, err error) error {
	r.metrics.writes.WithLabelValues(resource).Inc()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
