package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/records"
)

const (
	rolloutNamespace = cluster.Label + "-rollouts"
	rolloutWorkload  = "web"
	rolloutReplicas  = 4
	// rolloutTime is the wait for one rollout. The judge says what it means that it takes longer.
	rolloutTime = 4 * time.Minute
)

// Rollouts restarts the pods of a Deployment, one RestartRollout after the other.
type Rollouts struct {
	cluster *cluster.Cluster
	journal *records.Journal
	choice  *rand.Rand
	last    *refitv1alpha1.RestartRollout
}

// StartRollouts makes the Deployment and waits until its pods are ready.
func StartRollouts(ctx context.Context, c *cluster.Cluster, journal *records.Journal, choice *rand.Rand) (*Rollouts, error) {
	if err := c.Namespace(ctx, rolloutNamespace); err != nil {
		return nil, err
	}
	labels := map[string]string{cluster.Label: rolloutWorkload}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: rolloutNamespace, Name: rolloutWorkload}}
	object.Spec.Replicas = new(int32(rolloutReplicas))
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	object.Spec.Template.Labels = labels
	object.Spec.Template.Spec = c.Pod(rolloutNamespace, "", "", cluster.ReadyLate).Spec
	if err := client.IgnoreAlreadyExists(c.Create(ctx, object)); err != nil {
		return nil, fmt.Errorf("make deployment: %w", err)
	}
	err := cluster.Until(ctx, "pods of the deployment", cluster.RolloutTime, func(ctx context.Context) bool {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object) == nil && object.Status.ReadyReplicas == rolloutReplicas
	})
	return &Rollouts{cluster: c, journal: journal, choice: choice}, err
}

// Run makes rollouts until the context ends. The last one may be under way then.
func (r *Rollouts) Run(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		rollout := r.newRollout(n)
		if call(ctx, func(ctx context.Context) error { return client.IgnoreAlreadyExists(r.cluster.Create(ctx, rollout)) }) != nil {
			_ = cluster.Pause(ctx, time.Second) // an outage; a create whose answer was lost is tried again under its name
			n--
			continue
		}
		r.last = rollout
		if err := r.wait(ctx); err != nil && ctx.Err() == nil {
			r.journal.Say("%v", err) // the judge says what it means
		}
	}
	return nil
}

// Last waits for the rollout that was under way at the end.
func (r *Rollouts) Last(ctx context.Context) error {
	if r.last == nil {
		return nil
	}
	if err := r.wait(ctx); !errors.Is(err, cluster.ErrLate) {
		return err
	}
	return nil
}

func (r *Rollouts) wait(ctx context.Context) error {
	return cluster.Until(ctx, "end of rollout "+r.last.Name, rolloutTime, func(ctx context.Context) bool {
		var found refitv1alpha1.RestartRollout
		return r.cluster.Get(ctx, client.ObjectKeyFromObject(r.last), &found) == nil &&
			meta.IsStatusConditionTrue(found.Status.Conditions, refitv1alpha1.ConditionFinished)
	})
}

func (r *Rollouts) newRollout(n int) *refitv1alpha1.RestartRollout {
	rollout := &refitv1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: rolloutNamespace, Name: fmt.Sprintf("rollout-%d", n)}}
	rollout.Spec.TargetRef = &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: rolloutWorkload}
	rollout.Spec.Containers = refitv1alpha1.RolloutContainers("app")
	rollout.Spec.MaxUnavailable = new(intstr.FromInt(1 + r.choice.IntN(2)))
	rollout.Spec.FailurePolicy = []refitv1alpha1.RolloutFailurePolicy{refitv1alpha1.RolloutFailureStop, refitv1alpha1.RolloutFailureContinue}[r.choice.IntN(2)]
	rollout.Spec.Pod.ActiveDeadlineSeconds = new(int64(90))
	return rollout
}
