package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/policy"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// policySets are the SidecarSets with engine Policy. Two of them select the pods that are to be injected by the API server.
const policySets = 2

// compiledLabel is the value of the label of these pods.
const compiledLabel = "policy"

// compilePolicies makes the SidecarSets with engine Policy and their policies.
func (b *bench) compilePolicies(ctx context.Context) error {
	for i := range policySets {
		set := b.policySet(i)
		if err := b.API.Create(ctx, set); err != nil {
			return fmt.Errorf("make SidecarSet: %w", err)
		}
		compiled, errs := policy.Compile(set, testcluster.System, nil, time.Now())
		if len(errs) > 0 {
			return fmt.Errorf("compile SidecarSet: %w", errs.ToAggregate())
		}
		if err := errors.Join(b.API.Create(ctx, compiled.Policy), b.API.Create(ctx, compiled.Binding)); err != nil {
			return fmt.Errorf("make policy: %w", err)
		}
	}
	return nil
}

// deletePolicies deletes them.
func (b *bench) deletePolicies(ctx context.Context) error {
	var errs []error
	for i := range policySets {
		set := b.policySet(i)
		named := metav1.ObjectMeta{Name: policy.Name(set)}
		for _, object := range []client.Object{
			&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: named}, &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: named}, set,
		} {
			errs = append(errs, client.IgnoreNotFound(b.API.Delete(ctx, object)))
		}
	}
	return errors.Join(errs...)
}

// policySet is one without what depends on the pod, which a policy cannot have.
func (b *bench) policySet(i int) *v1beta1.SidecarSet {
	set := b.sidecarSet(i)
	set.Name, set.Spec.Selector.MatchLabels[label] = fmt.Sprintf("%spolicy-%d", prefix, i), compiledLabel
	set.Spec.InjectionStrategy.Engine = v1beta1.EnginePolicy
	set.Spec.Containers[0].ShareVolumePolicy, set.Spec.Containers[0].TransferEnv = v1beta1.ShareVolumePolicy{}, nil
	return set
}
