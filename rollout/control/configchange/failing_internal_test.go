package configchange

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var errAway = errors.New("the API server is away")

// failing fails one kind of call, such as "get *v1.ConfigMap".
func failing(to client.Client, call string) client.Client {
	fails := func(verb string, object any) error {
		if fmt.Sprintf("%s %T", verb, object) == call {
			return errAway
		}
		return nil
	}
	return interceptor.NewClient(to.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := fails("get", o); err != nil {
				return err
			}
			return c.Get(ctx, k, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := fails("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := fails("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := fails("patch", o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	})
}

// A ConfigMap that cannot be read is not one that has no content, and pods whose volumes may be old are not restarted.
func TestAWorkloadIsRestartedOnlyWhenAllCouldBeReadAndWritten(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"get *v1.ConfigMap", "get *v1alpha1.RestartTrigger", "list *v1alpha1.RestartRolloutList", "list *v1.PodList", "patch *v1.Pod", "create *v1alpha1.RestartRollout"} {
		a := newAPIServer(t, deployment(), configMap("1"), podOf("web-abc", "web-abc-1"))
		a.settle()
		known := a.trigger().Status.Objects
		edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
		working := a.Client
		a.reconciler.client, a.reconciler.live = failing(working, call), failing(working, call)
		if err := a.until(); !errors.Is(err, errAway) || len(a.rollouts()) > 0 {
			t.Errorf("%s: %v, %d rollouts", call, err, len(a.rollouts()))
		}
		if diff := cmp.Diff(known, a.trigger().Status.Objects); diff != "" {
			t.Errorf("%s: the change is forgotten (-want +got):\n%s", call, diff)
		}
		a.reconciler.client, a.reconciler.live = working, working
		if a.settle(); len(a.rollouts()) != 1 {
			t.Errorf("%s: %d rollouts when it works again", call, len(a.rollouts()))
		}
	}
}

// The annotation only makes kubelet update the volumes sooner.
func TestAPodWhoseAnnotationIsRefusedDoesNotKeepItsWorkloadFromBeingRestarted(t *testing.T) {
	t.Parallel()
	pods := corev1.SchemeGroupVersion.WithResource("pods").GroupResource()
	for name, refusal := range map[string]error{
		"forbidden":   apierrors.NewForbidden(pods, "web-abc-1", errors.New("policy")),
		"invalid":     apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web-abc-1", nil),
		"bad request": apierrors.NewBadRequest("admission webhook denied the request"),
		"too large":   apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	} {
		a := newAPIServer(t, deployment(), configMap("1"), podOf("web-abc", "web-abc-1"), podOf("web-abc", "web-abc-2"))
		a.settle()
		edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"] = "2" })
		a.reconciler.client = interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if o.GetName() == "web-abc-1" {
					return refusal
				}
				return c.SubResource(sub).Patch(ctx, o, patch, opts...)
			},
		})
		if err := a.until(); err != nil || len(a.rollouts()) != 1 {
			t.Errorf("%s: %v, %d rollouts", name, err, len(a.rollouts()))
		}
		if _, ok := a.refreshed["web-abc-2"]; !ok || len(a.refreshed) != 1 {
			t.Errorf("%s: annotated pods %v", name, a.refreshed)
		}
	}
}

func TestATriggerThatCannotBeCreatedIsCreatedLater(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), configMap("1"))
	working := a.Client
	a.reconciler.client = failing(working, "create *v1alpha1.RestartTrigger")
	if err := a.until(); !errors.Is(err, errAway) || a.trigger() != nil {
		t.Errorf("%v, %+v", err, a.trigger())
	}
	a.reconciler.client = working
	if a.settle(); a.trigger() == nil {
		t.Error("there is none when it works again")
	}
}
