package history_test

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/control/history"
	"github.com/refit-project/refit/sidecarset/revision"
)

const (
	own   = "refit-system"
	other = "kruise-system"
)

// world has the revisions of SidecarSet logs in the namespaces of refit-manager and of kruise-manager.
type world struct {
	*testing.T
	client.Client
	set    *v1beta1.SidecarSet
	writes []string // of the last call of keep
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t, Client: fake.NewClientBuilder().WithScheme(scheme).Build(), set: &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "uid"}}}
	w.image("log:1")
	return w
}

func (w *world) image(image string) {
	w.set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: image}}}
}

// kruise writes the revision of an image as kruise-manager does.
func (w *world) kruise(image string, number int64, change ...func(*appsv1.ControllerRevision)) string {
	w.Helper()
	w.image(image)
	r, err := revision.New(w.set, other, number)
	if err != nil {
		w.Fatal(err)
	}
	r.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
	for _, f := range change {
		f(r)
	}
	if err := w.Create(w.Context(), r); err != nil {
		w.Fatal(err)
	}
	return r.Name
}

func (w *world) keep(used func(string) bool) (latest string) {
	w.Helper()
	w.writes = nil
	keeper := &history.Keeper{Client: w, Live: w, Namespace: own, OpenKruise: other, Written: func(_, doing string, err error) error {
		w.writes = append(w.writes, doing)
		return err
	}, Logger: slog.New(slog.DiscardHandler)}
	latest, _, err := keeper.Keep(w.Context(), w.set, used)
	if err != nil {
		w.Fatal(err)
	}
	return latest
}

// numbers of the revisions in a namespace, by name.
func (w *world) numbers(namespace string) map[string]int64 {
	w.Helper()
	var list appsv1.ControllerRevisionList
	if err := w.List(w.Context(), &list, client.InNamespace(namespace)); err != nil {
		w.Fatal(err)
	}
	numbers := map[string]int64{}
	for i := range list.Items {
		numbers[list.Items[i].Name] = list.Items[i].Revision
	}
	return numbers
}

func TestHistoryOfOpenKruiseContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stable := func(r *appsv1.ControllerRevision) { r.Labels[v1beta1.LabelSidecarSetCustomVersion] = "stable" }
	first := w.kruise("log:1", 4, stable)
	second := w.kruise("log:2", 7)
	if latest := w.keep(nil); latest != second {
		t.Errorf("the newest is %s, want %s", latest, second)
	}
	w.image("log:3")
	third := w.keep(nil)
	if diff := cmp.Diff(map[string]int64{first: 4, second: 7, third: 8}, w.numbers(own)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.image("log:1")
	if latest := w.keep(nil); latest != first {
		t.Errorf("rolled back to %s, want %s", latest, first)
	}
	if diff := cmp.Diff(map[string]int64{first: 9, second: 7, third: 8}, w.numbers(own)); diff != "" {
		t.Errorf("rolled back, -want +got:\n%s", diff)
	}
	var copied appsv1.ControllerRevision
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: own, Name: first}, &copied); err != nil {
		t.Fatal(err)
	}
	if copied.Labels[v1beta1.LabelSidecarSetCustomVersion] != "stable" || !metav1.IsControlledBy(&copied, w.set) || len(copied.Annotations) != 2 {
		t.Errorf("copy %+v", copied.ObjectMeta)
	}
}

func TestRevisionsOfOthersAreNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kruise("log:1", 1, func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "of a SidecarSet that was deleted" })
	w.kruise("log:2", 2, func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil })
	w.image("log:3")
	if latest := w.keep(nil); len(w.numbers(own)) != 1 || w.numbers(own)[latest] != 1 {
		t.Errorf("revisions %v", w.numbers(own))
	}
}

func TestRevisionsBeyondTheLimitAreNotCopiedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set.Spec.RevisionHistoryLimit = new(int32(2))
	first := w.kruise("log:1", 1)
	second := w.kruise("log:2", 2)
	third := w.kruise("log:3", 3)
	none := func(string) bool { return false }
	for _, writes := range []int{3, 0} { // two copies, and the first is deleted
		w.keep(none)
		if got := w.numbers(own); len(got) != 2 || got[first] != 0 || len(w.writes) != writes {
			t.Errorf("%v after %q", got, w.writes)
		}
	}
	w.image("log:4")
	fourth := w.keep(func(name string) bool { return name == second })
	for range 2 {
		w.keep(func(name string) bool { return name == second })
		got := w.numbers(own)
		if names := []string{second, fourth}; len(got) != 2 || !slices.ContainsFunc(names, func(n string) bool { return got[n] > 0 }) || got[third] != 0 {
			t.Errorf("%v, want %v", got, names)
		}
	}
}
