package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/follow"
)

// Options are fields of a policy that a command may set. It leaves nil fields as they are.
type Options struct {
	MaxUnavailable            *intstr.IntOrString
	DrainSeconds              *int32
	PodDisruptionBudgetPolicy *v1alpha1.PodDisruptionBudgetPolicy
	// Canary is how many pods are updated first; the others follow when that is promoted.
	Canary *intstr.IntOrString
	// NoCanary removes the steps.
	NoCanary bool
}

// given reports whether there is something to set.
func (o *Options) given() bool { return o != nil && *o != Options{} }

func (o *Options) apply(spec *v1alpha1.InPlaceUpdatePolicySpec) {
	if o == nil {
		return
	}
	if o.MaxUnavailable != nil {
		spec.MaxUnavailable = o.MaxUnavailable
	}
	if o.DrainSeconds != nil {
		spec.DrainSeconds = o.DrainSeconds
	}
	if o.PodDisruptionBudgetPolicy != nil {
		spec.PodDisruptionBudgetPolicy = *o.PodDisruptionBudgetPolicy
	}
	switch {
	case o.Canary != nil:
		spec.Steps = []v1alpha1.RolloutStep{{Pods: *o.Canary, Pause: &v1alpha1.StepPause{}}}
	case o.NoCanary:
		spec.Steps = nil
	}
}

// findPolicy finds the policy of the workload, or prepares a new one.
func (s *setter) findPolicy(ctx context.Context) error {
	policy, err := s.policy(ctx)
	if !errors.Is(err, errNoPolicy) {
		s.governs = policy
		return err
	}
	if !s.how.CreatePolicy {
		return err
	}
	const longest = 180
	s.made = true
	s.governs = &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.target.Name[:min(len(s.target.Name), longest)]}}
	s.governs.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: s.target.Kind, Name: s.target.Name}
	s.how.Options.apply(&s.governs.Spec)
	return nil
}

// tryPolicy sends the policy as a dry run.
func (s *setter) tryPolicy(ctx context.Context) error {
	if s.made {
		return s.create(ctx, client.DryRunAll)
	}
	after := s.governs.DeepCopy()
	s.how.Options.apply(&after.Spec)
	return refused(s.API.Patch(ctx, after, client.MergeFrom(s.governs), client.DryRunAll))
}

// create creates the policy. If another kind of workload has a policy of that name, the policy gets another name.
func (s *setter) create(ctx context.Context, options ...client.CreateOption) error {
	err := s.API.Create(ctx, s.governs, options...)
	if apierrors.IsAlreadyExists(err) {
		s.governs.Name += "-" + lower(s.target.Kind)
		err = s.API.Create(ctx, s.governs, options...)
	}
	if err != nil {
		return refused(fmt.Errorf("create InPlaceUpdatePolicy %s: %w", s.governs.Name, noKind(err)))
	}
	return nil
}

// writePolicy creates or changes the policy, and says so.
func (s *setter) writePolicy(ctx context.Context) error {
	if s.made {
		if err := s.create(ctx); err != nil {
			return err
		}
		s.sayPolicy("")
		return nil
	}
	change, err := s.changeOfPolicy()
	if err != nil || change == "" {
		return err
	}
	s.sayPolicy("")
	before := s.governs.DeepCopy()
	if err := s.edit(ctx, s.governs, s.how.Options.apply); err != nil {
		return err
	}
	after := before.DeepCopy()
	s.how.Options.apply(&after.Spec)
	if s.former, err = client.MergeFrom(after).Data(before); err != nil {
		return fmt.Errorf("compare InPlaceUpdatePolicies: %w", err)
	}
	return nil
}

// keepOptions changes the policy of a workload whose template stays: the options are also for the update in progress.
func (s *setter) keepOptions(ctx context.Context) error {
	if s.made {
		if s.how.Options.given() {
			s.Output.Print("  the options are not kept: %s has no InPlaceUpdatePolicy, and gets one only when its template is changed\n", s.target)
		}
		return nil
	}
	change, err := s.changeOfPolicy()
	switch {
	case err != nil || change == "":
		return err
	case !s.how.DryRun:
		return s.writePolicy(ctx)
	}
	if err := s.tryPolicy(ctx); err != nil {
		return err
	}
	s.sayPolicy("would be ")
	return nil
}

// changeOfPolicy returns the change of an existing policy, as text; empty if there is none.
func (s *setter) changeOfPolicy() (string, error) {
	after := s.governs.DeepCopy()
	s.how.Options.apply(&after.Spec)
	text, err := client.MergeFrom(s.governs).Data(after)
	if err != nil {
		return "", fmt.Errorf("compare InPlaceUpdatePolicies: %w", err)
	}
	if string(text) == "{}" {
		return "", nil
	}
	return string(text), nil
}

// sayPolicy says what happens to the policy, so that nobody is surprised that it stays.
func (s *setter) sayPolicy(would string) {
	change, _ := s.changeOfPolicy() // its text only
	switch {
	case s.made:
		s.Output.Print("  InPlaceUpdatePolicy %s %screated. It stays: later changes of the template of %s, whoever makes them, are made in place too, until\n"+
			"  kubectl delete inplaceupdatepolicy %s --namespace=%s\n", s.governs.Name, would, s.target, s.governs.Name, s.Namespace)
	case change != "":
		s.Output.Print("  InPlaceUpdatePolicy %s %schanged, for this and later updates: %s\n", s.governs.Name, would, change)
	default:
		s.Output.Print("  InPlaceUpdatePolicy %s stays as it is\n", s.governs.Name)
	}
}

const (
	// holdTimeout is how long refit-manager and the API server may take until they know a policy.
	holdTimeout = 30 * time.Second
	// holdInterval is the time between two looks.
	holdInterval = 250 * time.Millisecond
	// lastLook limits calls after the end of the context.
	lastLook = 5 * time.Second
)

var errNotHeld = errors.New("the workload would not be held")

// awaitHold waits until the API server would hold the workload in the write that changes its template.
func (s *setter) awaitHold(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, holdTimeout, errNotHeld)
	defer cancel()
	silent := s.silent()
	policy, err := follow.Object(ctx, s.API, &v1alpha1.InPlaceUpdatePolicyList{}, s.governs, func(p *v1alpha1.InPlaceUpdatePolicy) bool {
		c := condition(p, v1alpha1.ConditionAccepted)
		return c != nil && c.Status != metav1.ConditionUnknown && p.Status.ObservedGeneration >= p.Generation
	}, func(err error) { silent.Tick(false, err) })
	if errors.Is(context.Cause(ctx), errNotHeld) {
		return fmt.Errorf("%w: refit-manager has not accepted InPlaceUpdatePolicy %s within %s; the template has not been changed: see kubectl refit doctor", console.ErrRefused, s.governs.Name, holdTimeout)
	}
	if err != nil {
		return err
	}
	s.governs = policy
	if c := condition(policy, v1alpha1.ConditionAccepted); c.Status != metav1.ConditionTrue {
		return fmt.Errorf("%w: InPlaceUpdatePolicy %s is not accepted: %s; the template has not been changed", console.ErrRefused, policy.Name, text(c))
	}
	if policy.Spec.HoldPolicy == v1alpha1.HoldByOwner || s.replaces { // kubectl rollout restart, and going back to before one, are never held
		return nil
	}
	return s.dryRunUntilHeld(ctx)
}

func (s *setter) dryRunUntilHeld(ctx context.Context) error {
	again := time.NewTicker(holdInterval)
	defer again.Stop()
	for {
		answer, err := s.send(ctx, client.DryRunAll)
		switch {
		case errors.Is(context.Cause(ctx), errNotHeld):
			return fmt.Errorf("%w: the API server does not hold %s in the write that changes its template, so that its pods would be replaced; the template has not been changed: see kubectl refit doctor",
				console.ErrRefused, s.target)
		case err != nil:
			return err
		case answer.GetLabels()[v1alpha1.LabelHeld] != "":
			return nil
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}
