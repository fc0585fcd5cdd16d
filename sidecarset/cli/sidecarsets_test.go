package cli_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	sidecarsetcli "github.com/refit-project/refit/sidecarset/cli"
	"github.com/refit-project/refit/sidecarset/revision"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func set(image string) *v1beta1.SidecarSet {
	s := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", UID: "u", Generation: 3, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Image: image}}}
	s.Status.ObservedGeneration = 3
	s.Status.MatchedPods, s.Status.UpdatedPods, s.Status.ReadyPods, s.Status.LatestRevision = 5, 2, 4, "mesh-3"
	return s
}

// fixture is a cluster with a SidecarSet of proxy:3 and three revisions.
type fixture struct {
	config sidecarsetcli.Config
	out    bytes.Buffer
	update func() error // answer to an update
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	for i, image := range []string{"proxy:1", "proxy:2", "proxy:3"} {
		one, err := revision.New(set(image), "refit-system", int64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		one.Name = "mesh-" + image[len("proxy:"):]
		objects = append(objects, one)
	}
	f := &fixture{update: func() error { return nil }}
	api := fake.NewClientBuilder().WithScheme(kinds).WithObjects(append(objects, set("proxy:3"))...).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := f.update(); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	f.config = sidecarsetcli.Config{API: api, System: "refit-system", Now: func() time.Time { return noon }}
	return f
}

func (f *fixture) stored(t *testing.T) *v1beta1.SidecarSet {
	t.Helper()
	var s v1beta1.SidecarSet
	if err := f.config.API.Get(t.Context(), client.ObjectKey{Name: "mesh"}, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestState(t *testing.T) {
	t.Parallel()
	condition := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "m"}
	}
	for name, tc := range map[string]struct {
		change        func(*v1beta1.SidecarSet)
		state, detail string
	}{
		"not seen yet": {func(s *v1beta1.SidecarSet) { s.Generation = 4 }, "Waiting", "refit-manager has not seen the last change"},
		"updating": {func(s *v1beta1.SidecarSet) {
			s.Status.Conditions = []metav1.Condition{condition("Progressing", "True", "Updating")}
		}, "Updating", "m"},
		"paused": {func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Paused = true }, "Paused", ""},
		"not degraded": {func(s *v1beta1.SidecarSet) {
			s.Status.Conditions = []metav1.Condition{condition("Progressing", "True", "Completed"), condition("Degraded", "False", "AsExpected")}
		}, "Completed", "m"},
		"degraded": {func(s *v1beta1.SidecarSet) {
			s.Status.Conditions = []metav1.Condition{condition("Progressing", "True", "Updating"), condition("Degraded", "True", "UpdateFailed")}
		}, "Updating,Degraded", "UpdateFailed: m"},
		"of OpenKruise":    {func(*v1beta1.SidecarSet) {}, "Updating", ""},
		"done, OpenKruise": {func(s *v1beta1.SidecarSet) { s.Status.UpdatedPods = 5 }, "Completed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set("proxy:3")
			tc.change(s)
			if state, detail := sidecarsetcli.State(s); state != tc.state || detail != tc.detail {
				t.Errorf("%q, %q; want %q, %q", state, detail, tc.state, tc.detail)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, names := range [][]string{nil, {"mesh"}} {
		f.out.Reset()
		if err := f.config.Status(t.Context(), table.Options{}, &f.out, names...); err != nil {
			t.Fatal(err)
		}
		const want = "NAME   PODS   UPDATED   READY   UPDATING   FAILED   STATE      AGE\nmesh   5      2         4       0          0        Updating   60m\n"
		if diff := cmp.Diff(want, f.out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if err := f.config.Status(t.Context(), table.Options{}, &f.out, "gone"); console.ExitCode(err) != console.ExitFailed {
		t.Errorf("%v", err)
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i, step := range []struct {
		paused bool
		want   string
	}{{true, "paused"}, {true, "is paused already"}, {false, "resumed"}, {false, "is not paused"}} {
		f.out.Reset()
		if err := f.config.Pause(t.Context(), &f.out, "mesh", step.paused); err != nil || f.out.String() != "sidecarset/mesh "+step.want+"\n" {
			t.Errorf("step %d: %v, %q", i, err, f.out.String())
		}
		if f.stored(t).Spec.UpdateStrategy.Paused != step.paused {
			t.Errorf("step %d: not stored", i)
		}
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		to          int64
		image, want string
		code        int
	}{
		"the one before":   {0, "proxy:2", "taken back to revision 2 (mesh-2)", 0},
		"a number":         {1, "proxy:1", "taken back to revision 1 (mesh-1)", 0},
		"the latest":       {3, "proxy:3", "is already as in revision 3 (mesh-3)", 0},
		"no such revision": {7, "proxy:3", "there are 3 (mesh-3), 2 (mesh-2), 1 (mesh-1)", console.ExitRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			err := f.config.Undo(t.Context(), &f.out, "mesh", tc.to)
			text := f.out.String()
			if err != nil {
				text += err.Error()
			}
			stored := f.stored(t)
			if console.ExitCode(err) != tc.code || !strings.Contains(text, tc.want) || stored.Spec.Containers[0].Image != tc.image || stored.Spec.Selector == nil {
				t.Errorf("%s, image %s", text, stored.Spec.Containers[0].Image)
			}
		})
	}
}

// Otherwise the revision would get the custom version of the one that is undone, and what refers to its own would not find it.
func TestUndoTakesTheCustomVersionBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec, label, revision string
		wantSpec, wantLabel   string
	}{
		"in the spec":               {spec: "canary", revision: "stable", wantSpec: "stable"},
		"in the label of v1alpha1":  {label: "canary", revision: "stable", wantLabel: "stable"},
		"in both":                   {spec: "canary", label: "other", revision: "stable", wantSpec: "stable", wantLabel: "stable"},
		"the revision has none":     {spec: "canary"},
		"none, in the label":        {label: "canary"},
		"only the revision has one": {revision: "stable", wantSpec: "stable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			s := f.stored(t)
			if s.Spec.CustomVersion = tc.spec; tc.label != "" {
				s.Labels = map[string]string{v1beta1.LabelSidecarSetCustomVersion: tc.label}
			}
			var before appsv1.ControllerRevision
			err := errors.Join(f.config.API.Update(t.Context(), s), f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "refit-system", Name: "mesh-2"}, &before))
			if tc.revision != "" {
				before.Labels[v1beta1.LabelSidecarSetCustomVersion] = tc.revision
			}
			if err := errors.Join(err, f.config.API.Update(t.Context(), &before), f.config.Undo(t.Context(), &f.out, "mesh", 0)); err != nil {
				t.Fatal(err)
			}
			s = f.stored(t)
			if s.Spec.Containers[0].Image != "proxy:2" || s.Spec.CustomVersion != tc.wantSpec || s.Labels[v1beta1.LabelSidecarSetCustomVersion] != tc.wantLabel {
				t.Errorf("image %s, version %q, labels %v", s.Spec.Containers[0].Image, s.Spec.CustomVersion, s.Labels)
			}
		})
	}
}

// While no refit-manager runs the newest spec has no revision.
func TestUndoOfAChangeThatTheManagerHasNotSeen(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{"proxy:faulty": "proxy:3", "proxy:3": "proxy:2"} {
		f := newFixture(t)
		changed := f.stored(t)
		changed.Generation, changed.Spec.Containers[0].Image = 4, image
		if err := f.config.API.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		if err := f.config.Undo(t.Context(), &f.out, "mesh", 0); err != nil || f.stored(t).Spec.Containers[0].Image != want {
			t.Errorf("%s is taken back to %s, want %s: %v", image, f.stored(t).Spec.Containers[0].Image, want, err)
		}
	}
}

func TestChangesAreTriedAgainAfterAConflictAndRefusalsExitWith2(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	conflicts := 2
	f.update = func() error {
		if conflicts--; conflicts >= 0 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "sidecarsets"}, "mesh", nil)
		}
		return nil
	}
	if err := f.config.Pause(t.Context(), &f.out, "mesh", true); err != nil || !f.stored(t).Spec.UpdateStrategy.Paused {
		t.Errorf("%v", err)
	}
	f.update = func() error { return apierrors.NewBadRequest("no") }
	if err := f.config.Undo(t.Context(), &f.out, "mesh", 0); console.ExitCode(err) != console.ExitRefused {
		t.Errorf("%v", err)
	}
}

// It ended with 1, as if something had been begun, where the revisions in the namespace of Refit must not be read.
func TestUndoWithoutTheRightToReadRevisionsIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.config.API = interceptor.NewClient(f.config.API.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "controllerrevisions"}, "", errors.New("no"))
		},
	})
	if err := f.config.Undo(t.Context(), &f.out, "mesh", 0); console.ExitCode(err) != console.ExitRefused || !strings.Contains(err.Error(), "list revisions in namespace refit-system") {
		t.Errorf("%v", err)
	}
}

func TestRenderFromCluster(t *testing.T) {
	t.Parallel()
	deployment := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	deployment.Spec.Template.Labels = map[string]string{"app": "web"}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	f := newFixture(t, deployment, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	err := f.config.RenderFromCluster(t.Context(), &f.out, appsv1.SchemeGroupVersion.WithKind("Deployment"), "shop", "web")
	if err != nil || !strings.Contains(f.out.String(), "proxy:3") {
		t.Errorf("%v\n%s", err, f.out.String())
	}
	if err := f.config.RenderFromCluster(t.Context(), &f.out, appsv1.SchemeGroupVersion.WithKind("Deployment"), "shop", "gone"); err == nil {
		t.Error("no error")
	}
}
