package follow_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/cli/follow"
)

// failing is a server whose first calls fail.
type failing struct {
	*server
	gets, watches []error
}

func take(errs *[]error) (err error) {
	if len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

func (s *failing) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := take(&s.gets); err != nil {
		return err
	}
	return s.server.Get(ctx, key, into, options...)
}

func (s *failing) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if err := take(&s.watches); err != nil {
		return nil, err
	}
	return s.server.Watch(ctx, list, options...)
}

var (
	errRefused   = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errAway      = apierrors.NewServiceUnavailable("the server is starting")
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "containerrecreaterequests"}, "a", errors.New("not allowed"))
)

const (
	inProgress = `{"metadata":{"name":"a"},"status":{"phase":"Recreating"}}`
	completed  = `{"metadata":{"name":"a"},"status":{"phase":"Completed"}}`
)

// The operation goes on without the API server.
func TestAnObjectIsFollowedWhenTheAPIServerIsBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gets, watches []error
		want          error
		tries         int
	}{
		"reads fail":         {[]error{errAway, errRefused}, nil, nil, 2},
		"watches fail":       {nil, []error{errAway, errRefused}, nil, 2},
		"may not be read":    {[]error{errForbidden}, nil, errForbidden, 0},
		"may not be watched": {nil, []error{errForbidden}, errForbidden, 0},
		"until the timeout":  {slices.Repeat([]error{errRefused}, 1000), nil, errRefused, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute-time.Second/2)
				defer cancel()
				s := &failing{&server{responses: []string{inProgress, inProgress, completed}}, tc.gets, tc.watches}
				tries := 0
				last, err := follow.Object(ctx, s, &v1beta1.ContainerRecreateRequestList{}, &v1beta1.ContainerRecreateRequest{}, func(r *v1beta1.ContainerRecreateRequest) bool {
					return r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
				}, func(err error) {
					if err != nil {
						tries++
					}
				})
				if !errors.Is(err, tc.want) || tries != tc.tries || err == nil && last.Status.Phase != v1beta1.ContainerRecreateRequestCompleted {
					t.Errorf("%v, %d tries, phase %q", err, tries, last.Status.Phase)
				}
			})
		})
	}
}

func TestAKindIsFollowedWhenTheAPIServerIsBack(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{errRefused: "[b]", errForbidden: "[]"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			s := &failing{&server{responses: []string{`{"items":[{"metadata":{"name":"b"},"status":{}}]}`}}, nil, []error{err}}
			seen := []string{}
			follow.Kind{API: s, List: &v1beta1.ContainerRecreateRequestList{}, See: func(_ context.Context, object client.Object) { seen = append(seen, object.GetName()) }}.Follow(ctx)
			if is := fmt.Sprint(seen); is != want {
				t.Errorf("%v: seen %s, want %s", err, is, want)
			}
		})
	}
}
