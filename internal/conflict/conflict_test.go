package conflict_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/internal/conflict"
)

// A watch that is interrupted for a minute: one try each half second were 120 refused writes for each object.
func TestAWriteThatIsRefusedAgainAndAgainIsTriedMoreSeldom(t *testing.T) {
	t.Parallel()
	changed := fmt.Errorf("write status: %w", apierrors.NewConflict(schema.GroupResource{}, "r", errors.New("changed")))
	exists := apierrors.NewAlreadyExists(schema.GroupResource{}, "r")
	answers := map[string][]error{"stale": {changed, exists, changed, changed, changed, changed, changed, nil, changed}, "other": {changed}}
	r := conflict.Reconciler(reconcile.Func(func(_ context.Context, key ctrl.Request) (ctrl.Result, error) {
		next := answers[key.Name][0]
		answers[key.Name] = answers[key.Name][1:]
		return ctrl.Result{RequeueAfter: time.Hour}, next
	}))
	look := func(name string) time.Duration {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil {
			t.Errorf("%s: %v, want no error, which would be logged", name, err)
		}
		return result.RequeueAfter
	}
	var got []time.Duration
	for range 7 {
		got = append(got, look("stale"))
	}
	got = append(got, look("other"), look("stale"), look("stale"))
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second, 500 * time.Millisecond, time.Hour, 500 * time.Millisecond}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

func TestOtherErrorsAreReturned(t *testing.T) {
	t.Parallel()
	fault := apierrors.NewInternalError(errors.New("planted"))
	r := conflict.Reconciler(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, fault }))
	if result, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, fault) || result != (ctrl.Result{}) {
		t.Errorf("%+v, %v", result, err)
	}
}
