package cli_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// The restart goes on meanwhile, and further targets have to be begun after it.
func TestRestartIsFollowedWhenTheAPIServerIsBack(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"deployment/web", "pod/web-abc-1"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.finish = end(crr.Outcome{})
			away := 20 // the number of reads that fail
			f.config.API = interceptor.NewClient(f.config.API, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					switch o.(type) {
					case *v1alpha1.RestartRollout, *v1beta1.ContainerRecreateRequest:
						if away--; away >= 0 {
							return apierrors.NewServiceUnavailable("the server is starting")
						}
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			if err := run(t, f, of); err != nil {
				t.Errorf("%s: %v", of, err)
			}
			if said := f.out.String(); strings.Count(said, "trying again until the API server can be reached: the server is starting") != 1 || strings.Contains(said, "manager.features") {
				t.Errorf("%s:\n%s", of, said)
			}
		})
	}
}
