package history_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/sidecarset/control/history"
	"github.com/refit-project/refit/sidecarset/revision"
)

// write stores the revision of an image in the manager's own namespace.
func (w *world) write(image string, number int64, change ...func(*appsv1.ControllerRevision)) string {
	w.Helper()
	w.image(image)
	r, err := revision.New(w.set, own, number)
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range change {
		f(r)
	}
	if err := w.Create(w.Context(), r); err != nil {
		w.Fatal(err)
	}
	return r.Name
}

// try keeps with a client of its own, and returns the error.
func (w *world) try(c client.Client, used func(string) bool) (latest string, err error) {
	w.writes = nil
	keeper := &history.Keeper{Client: c, Live: w, Namespace: own, OpenKruise: other, Written: func(_, doing string, err error) error {
		w.writes = append(w.writes, doing)
		return err
	}, Logger: slog.New(slog.DiscardHandler)}
	latest, _, err = keeper.Keep(w.Context(), w.set, used)
	return latest, err
}

// One whose owner has been lost is taken in the manager's own namespace, and one of another SidecarSet nowhere.
func TestARevisionWithoutAnOwnerIsKeptInTheManagersNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lost := w.write("log:1", 3, func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil })
	stranger := w.write("log:2", 9, func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "another" })
	w.image("log:3")
	latest := w.keep(nil)
	if diff := cmp.Diff(map[string]int64{lost: 3, stranger: 9, latest: 4}, w.numbers(own)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Before all pods are known nothing is deleted: one of them may need it.
func TestNoRevisionIsDeletedBeforeThePodsAreKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set.Spec.RevisionHistoryLimit = new(int32(1))
	for i, image := range []string{"log:1", "log:2", "log:3"} {
		w.kruise(image, int64(i)+1)
	}
	w.keep(nil)
	if got := w.numbers(own); len(got) != 3 {
		t.Errorf("%v", got)
	}
	latest := w.keep(func(string) bool { return false })
	w.agree(map[string]int64{latest: 3})
}

// A ControllerRevision of that name may be of somebody else, or of a SidecarSet that was deleted, with other data.
func TestATakenNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set.Status.CollisionCount = new(int32(4))
	taken := w.write("log:1", 1, func(r *appsv1.ControllerRevision) {
		r.OwnerReferences[0].UID = "another"
		r.Data = runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}
	})
	latest := w.keep(nil)
	if latest == taken || w.numbers(own)[latest] != 1 || *w.set.Status.CollisionCount != 5 {
		t.Errorf("%s is the newest, %v, collision count %d", latest, w.numbers(own), *w.set.Status.CollisionCount)
	}
	if again := w.keep(nil); again != latest || *w.set.Status.CollisionCount != 5 {
		t.Errorf("%s after %s", again, latest)
	}
}

// behind is a cache that does not have the revisions yet.
func behind(api client.Client) client.Client {
	return interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
}

func TestARevisionThatTheCacheDoesNotHaveYetIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.keep(nil)
	latest, err := w.try(behind(w.Client), nil)
	if err != nil || latest != first || w.set.Status.CollisionCount != nil {
		t.Errorf("%s, %v, collision count %v", latest, err, w.set.Status.CollisionCount)
	}
	w.agree(map[string]int64{first: 1})
}

// What fails in OpenKruise's namespace for now is tried again, and what fails in the manager's own always is.
func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	down := apierrors.NewInternalError(errors.New("down"))
	fails := func(verb, namespace string) interceptor.Funcs {
		answer := func(is string, o client.Object) error {
			if is == verb && o.GetNamespace() == namespace {
				return down
			}
			return nil
		}
		return interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if err := answer("create", o); err != nil {
					return err
				}
				return c.Create(ctx, o, options...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
				if err := answer("update", o); err != nil {
					return err
				}
				return c.Update(ctx, o, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := answer("patch", o); err != nil {
					return err
				}
				return c.Patch(ctx, o, patch, options...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if err := answer("delete", o); err != nil {
					return err
				}
				return c.Delete(ctx, o, options...)
			},
		}
	}
	for _, tt := range []struct{ verb, namespace string }{
		{"create", own}, {"update", own}, {"delete", own}, {"create", other}, {"patch", other}, {"delete", other},
	} {
		w := newWorld(t)
		w.set.Spec.RevisionHistoryLimit = new(int32(1))
		w.keep(nil)
		w.image("log:2")
		w.keep(nil)
		if w.image("log:1"); tt.verb == "create" || tt.verb == "delete" { // otherwise it goes back
			w.image("log:3")
		}
		failing := interceptor.NewClient(w.Client.(client.WithWatch), fails(tt.verb, tt.namespace))
		none := func(string) bool { return false }
		if _, err := w.try(failing, none); !apierrors.IsInternalError(err) {
			t.Errorf("%s in %s: %v after %q", tt.verb, tt.namespace, err, w.writes)
		}
		if latest, err := w.try(w.Client, none); err != nil || len(w.numbers(own)) != 1 || w.numbers(own)[latest] != 3 || len(w.numbers(other)) != 1 {
			t.Errorf("%s in %s: afterwards %v, in both %v and %v", tt.verb, tt.namespace, err, w.numbers(own), w.numbers(other))
		}
	}
}

func TestNothingIsWrittenElsewhereWithoutOpenKruise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kruise("log:1", 4)
	keeper := &history.Keeper{Client: w, Live: w, Namespace: own, Written: func(_, _ string, err error) error { return err }, Logger: slog.New(slog.DiscardHandler)}
	w.image("log:2")
	latest, revisions, err := keeper.Keep(t.Context(), w.set, nil)
	if err != nil || len(revisions) != 1 || w.numbers(own)[latest] != 1 || len(w.numbers(other)) != 1 {
		t.Errorf("%v, %d revisions, %v and %v", err, len(revisions), w.numbers(own), w.numbers(other))
	}
}
