package cli

import (
	"context"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
)

// Pause pauses a RestartRollout, or continues it. Restarts that have begun are completed.
func Pause(ctx context.Context, config Config, name string, paused bool) error {
	done, already := "resumed", "is not paused"
	if paused {
		done, already = "paused: pods whose restart has begun are completed", "is paused already"
	}
	object, err := config.inProgress(ctx, name)
	if err != nil {
		return err
	}
	if object.Spec.Paused == paused {
		done = already
	} else if err := config.change(ctx, object, func(spec *v1alpha1.RestartRolloutSpec) { spec.Paused = paused }); err != nil {
		return err
	}
	config.Output.Print("restartrollout/%s %s\n", name, done)
	return nil
}

// shortestDeadline is the shortest activeDeadlineSeconds that the API accepts.
const shortestDeadline = 3

// Abort ends a RestartRollout: it starts no further restart, and fails when the ones in progress have ended. The object and its
// requests are deleted after ttlSecondsAfterFinished.
func Abort(ctx context.Context, config Config, name string) error {
	object, err := config.inProgress(ctx, name)
	if err != nil {
		return err
	}
	err = config.change(ctx, object, func(spec *v1alpha1.RestartRolloutSpec) {
		// The deadline of a paused rollout begins when it continues; the partition leaves all pods as they are until then.
		spec.Paused, spec.Partition, spec.ActiveDeadlineSeconds = false, new(intstr.FromInt32(math.MaxInt32)), new(int64(shortestDeadline))
	})
	if err != nil {
		return err
	}
	config.Output.Print("restartrollout/%s aborted: it ends when the pods whose restart has begun are completed\n", name)
	return nil
}

// Status prints how a RestartRollout stands, or with watch follows it to its end.
func Status(ctx context.Context, config Config, name string, watch bool) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	object, err := config.read(ctx, name)
	if err != nil {
		return console.Ended(ctx, err)
	}
	if watch {
		r := &restarter{Config: config}
		if _, err := r.pods(ctx, Target{Workload: object.Spec.TargetRef, Selector: object.Spec.Selector}); err != nil {
			r.selector = labels.Nothing() // the workload may have been deleted; the requests are shown
		}
		return console.Ended(ctx, r.followRollout(ctx, object))
	}
	status := &object.Status
	config.Output.Print("restartrollout/%s: %s\n", name, progress(status))
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); c != nil {
		config.Output.Print("  %s: %s\n", c.Reason, c.Message)
	}
	for _, failure := range status.Failures {
		config.Output.Print("  pod %s: %s: %s\n", failure.Pod, failure.Reason, failure.Message)
	}
	if command := continuation(object); command != "" {
		config.Output.Print("  continue: %s\n", command)
	}
	return nil
}

// continuation returns the command that continues a rollout that does not continue by itself; empty for other rollouts.
func continuation(object *v1alpha1.RestartRollout) string {
	c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case object.Status.CompletionTime != nil:
	case object.Spec.Paused:
		return fmt.Sprintf("kubectl refit rollout resume restartrollout/%s --namespace=%s", object.Name, object.Namespace)
	case c != nil && c.Reason == v1alpha1.ReasonPartition:
		return fmt.Sprintf(`kubectl patch restartrollout %s --namespace=%s --type=merge --patch='{"spec":{"partition":0}}'`, object.Name, object.Namespace)
	}
	return ""
}

// progress returns how far a rollout is.
func progress(status *v1alpha1.RestartRolloutStatus) string {
	return fmt.Sprintf("%s %d of %d pods restarted, %d under way, %d failed", bar(status.RestartedPods, status.MatchedPods), status.RestartedPods, status.MatchedPods,
		status.RestartingPods, status.FailedPods)
}

func (c Config) read(ctx context.Context, name string) (*v1alpha1.RestartRollout, error) {
	object := &v1alpha1.RestartRollout{}
	err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, object)
	return object, noKind(err)
}

// inProgress reads a RestartRollout that has not ended.
func (c Config) inProgress(ctx context.Context, name string) (*v1alpha1.RestartRollout, error) {
	object, err := c.read(ctx, name)
	if err == nil && object.Status.CompletionTime != nil {
		return nil, fmt.Errorf("%w: RestartRollout %s has ended", console.ErrRefused, name)
	}
	return object, err
}

func (c Config) change(ctx context.Context, object *v1alpha1.RestartRollout, how func(*v1alpha1.RestartRolloutSpec)) error {
	before := object.DeepCopy()
	how(&object.Spec)
	return refused(c.API.Patch(ctx, object, client.MergeFrom(before)))
}
