package history_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestKruiseManagerFindsTheRevisionsOfRefit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.kruise("log:1", 4)
	w.image("log:2")
	w.set.Spec.CustomVersion = "stable"
	second := w.keep(nil)
	w.agree(map[string]int64{first: 4, second: 5})
	var theirs appsv1.ControllerRevision
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: other, Name: second}, &theirs); err != nil {
		t.Fatal(err)
	}
	if len(theirs.OwnerReferences) != 1 || theirs.OwnerReferences[0].UID != w.set.UID || theirs.Labels[v1beta1.LabelSidecarSetCustomVersion] != "stable" {
		t.Errorf("written for kruise-manager: %+v", theirs.ObjectMeta)
	}

	w.image("log:1") // back to the version before
	w.set.Spec.CustomVersion = "old"
	w.keep(nil)
	w.agree(map[string]int64{first: 6, second: 5})
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: other, Name: first}, &theirs); err != nil {
		t.Fatal(err)
	}
	if theirs.Labels[v1beta1.LabelSidecarSetCustomVersion] != "old" || theirs.Annotations["kubectl.kubernetes.io/last-applied-configuration"] == "" {
		t.Errorf("written by kruise-manager, and newest again: %+v", theirs.ObjectMeta)
	}
	w.keep(nil)
	if len(w.writes) != 0 {
		t.Errorf("nothing has changed, and it wrote %q", w.writes)
	}
}

func TestNumbersOfKruiseManagerAreTakenOverAfterAChangeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.keep(nil)
	w.image("log:2")
	second := w.keep(nil)
	// kruise-manager goes back to the first version.
	var theirs appsv1.ControllerRevision
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: other, Name: first}, &theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Revision = 3
	if err := w.Update(t.Context(), &theirs); err != nil {
		t.Fatal(err)
	}
	w.image("log:1")
	if latest := w.keep(nil); latest != first {
		t.Errorf("the newest is %s, want %s", latest, first)
	}
	w.agree(map[string]int64{first: 3, second: 2})
}

func TestRevisionsBeyondTheLimitAreDeletedInBothNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set.Spec.RevisionHistoryLimit = new(int32(2))
	var names []string
	for _, image := range []string{"log:1", "log:2", "log:3", "log:4"} {
		w.image(image)
		names = append(names, w.keep(func(string) bool { return false }))
	}
	w.agree(map[string]int64{names[2]: 3, names[3]: 4})
}

func TestRevisionsAreKeptWithoutANamespaceOfOpenKruise(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{
		"no permission": apierrors.NewForbidden(schema.GroupResource{Resource: "controllerrevisions"}, "", nil),
		"no namespace":  apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, other),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if object.GetNamespace() == other {
						return refused
					}
					return api.Create(ctx, object, options...)
				},
			})
			if latest := w.keep(nil); w.numbers(own)[latest] != 1 {
				t.Errorf("revisions %v, the newest is %q", w.numbers(own), latest)
			}
		})
	}
}

// agree checks that both namespaces have these revisions.
func (w *world) agree(want map[string]int64) {
	w.Helper()
	for _, namespace := range []string{own, other} {
		if diff := cmp.Diff(want, w.numbers(namespace)); diff != "" {
			w.Errorf("revisions in %s, -want +got:\n%s", namespace, diff)
		}
	}
}
