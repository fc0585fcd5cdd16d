package policy_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/policy"
)

// patched answers changes of objects with a function, and dry runs as before.
func (f *fixture) patched(answer func(client.Object) error) {
	f.config.API = interceptor.NewClient(f.config.API, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			var options client.PatchOptions
			options.ApplyOptions(opts)
			if len(options.DryRun) == 0 {
				if err := answer(o); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

func TestExistingPolicyIsChangedBackIfTheTemplateIsNotChanged(t *testing.T) {
	t.Parallel()
	const back = `InPlaceUpdatePolicy gently is changed back: {"spec":{"maxUnavailable":"25%","podDisruptionBudgetPolicy":null,"steps":null}}`
	for name, tc := range map[string]struct {
		f     func(*fixture)
		kept  bool // the policy is not changed back
		words []string
	}{
		"not held": {func(f *fixture) { f.holds = false }, false, []string{"the API server does not hold deployment/web", "the template has not been changed", back}},
		"refused": {func(f *fixture) {
			f.patched(func(o client.Object) error {
				if _, ok := o.(*appsv1.Deployment); ok {
					return apierrors.NewBadRequest("no more changes")
				}
				return nil
			})
		}, false, []string{"no more changes", back}},
		"not possible": {func(f *fixture) {
			f.holds = false
			changes := 0
			f.patched(func(o client.Object) error {
				if _, ok := o.(*v1alpha1.InPlaceUpdatePolicy); !ok {
					return nil
				}
				if changes++; changes > 1 {
					return errors.New("etcd is full")
				}
				return nil
			})
		}, true, []string{"the template has not been changed", `InPlaceUpdatePolicy gently stays changed; what it had before: {"spec":{"maxUnavailable":"25%"`, "etcd is full"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, existing(func(p *v1alpha1.InPlaceUpdatePolicy) {
					p.Spec.MaxUnavailable, p.Spec.DrainSeconds = new(intstr.FromString("25%")), new(int32(5))
				}))
				before := f.policies(t)[0].Spec
				f.config.Options = &policy.Options{
					MaxUnavailable: new(intstr.FromString("50%")), Canary: new(intstr.FromString("10%")), PodDisruptionBudgetPolicy: new(v1alpha1.PodDisruptionBudgetIgnore),
				}
				tc.f(f)
				f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), console.ExitRefused, tc.words...)
				if diff := cmp.Diff(before, f.policies(t)[0].Spec); (diff != "") != tc.kept {
					t.Error(diff)
				}
			})
		})
	}
}

func TestChangeOfThePolicyBySomebodyElseStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, existing(nil))
		f.holds, f.config.Options = false, &policy.Options{MaxUnavailable: new(intstr.FromString("50%"))}
		time.AfterFunc(10*time.Second, func() {
			p := f.policies(t)[0]
			p.Spec.MaxUnavailable = new(intstr.FromInt32(7))
			if err := f.config.API.Update(t.Context(), &p); err != nil {
				t.Error(err)
			}
		})
		f.expects(t, policy.Set(t.Context(), f.config, web, image("app:3")), console.ExitRefused, "InPlaceUpdatePolicy gently stays changed", "somebody else has changed it since")
		if is := f.policies(t)[0].Spec.MaxUnavailable.String(); is != "7" {
			t.Errorf("maxUnavailable %s", is)
		}
	})
}
