package moving_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/cli/moving"
	"github.com/refit-project/refit/cli/openkruise"
	"github.com/refit-project/refit/test/kit/golden"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

var both = []openkruise.Direction{openkruise.ToRefit, openkruise.FromRefit}

// crd is a CRD whose objects are stored in a version.
func crd(name, group, kind, version string, change ...func(*apiextensionsv1.CustomResourceDefinition)) client.Object {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + "." + group}}
	crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.Names.ListKind = group, kind, kind+"List"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true}}
	crd.Status.StoredVersions = []string{version}
	for _, c := range change {
		c(crd)
	}
	return crd
}

// objects reads the objects of a file, and adds the CRDs that they need.
func objects(t *testing.T) []client.Object {
	t.Helper()
	converted := func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	}
	list := []client.Object{
		crd("clonesets", "apps.kruise.io", "CloneSet", "v1beta1", converted), crd("sidecarsets", "apps.kruise.io", "SidecarSet", "v1beta1", converted),
		crd("containerrecreaterequests", "apps.kruise.io", "ContainerRecreateRequest", "v1beta1", converted), crd("imagepulljobs", "apps.kruise.io", "ImagePullJob", "v1beta1"),
		crd("imagelistpulljobs", "apps.kruise.io", "ImageListPullJob", "v1beta1"), crd("podprobemarkers", "apps.kruise.io", "PodProbeMarker", "v1alpha1"),
		crd("restartschedules", "refit.dev", "RestartSchedule", "v1alpha1"), crd("gameservers", "game.kruise.io", "GameServer", "v1alpha1"),
	}
	text, err := os.ReadFile(filepath.Join("testdata", "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		list = append(list, object)
	}
	return list
}

// api is a cluster with objects. What refuse names cannot be listed.
func api(t *testing.T, objects []client.Object, refuse map[string]error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := moving.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	// The program reads these kinds without their types; the fake API server has to know that they are there.
	for _, object := range objects {
		if kind := object.GetObjectKind().GroupVersionKind(); !kind.Empty() && !scheme.Recognizes(kind) {
			scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var given client.ListOptions
			given.ApplyOptions(options)
			if given.Limit == 0 {
				t.Errorf("%T is listed without a limit", list)
			}
			kind, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			if err := refuse[kind.Kind]; err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
}

func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := moving.Run(t.Context(), moving.Config{API: api(t, objects(t), nil), System: "refit-system", Directions: both, Now: now}, &out)
	if !errors.Is(err, moving.ErrDiffers) {
		t.Errorf("error %v", err)
	}
	golden.Check(t, filepath.Join("testdata", "report.txt"), out.String())
}

func TestOneDirectionIsReportedAlone(t *testing.T) {
	t.Parallel()
	for _, direction := range both {
		report := moving.Examine(t.Context(), moving.Config{API: api(t, objects(t), nil), System: "refit-system", Directions: []openkruise.Direction{direction}, Now: now})
		if len(report.Differences) < 5 {
			t.Errorf("%s: %d differences", direction, len(report.Differences))
		}
		for _, entry := range report.Differences {
			if entry.Direction != direction {
				t.Errorf("%s: %+v", direction, entry)
			}
		}
	}
}

func TestNamespacesAreExaminedWithTheirLabels(t *testing.T) {
	t.Parallel()
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"refit.dev/readiness-gate": "enabled"}}}
	report := moving.Examine(t.Context(), moving.Config{API: api(t, []client.Object{shop}, nil), System: "refit-system", Directions: both, Now: now})
	if len(report.Differences) != 1 || report.Differences[0].Object != "Namespace shop" || report.Differences[0].Direction != openkruise.FromRefit {
		t.Errorf("%+v", report.Differences)
	}
}

func TestClusterOnWhichNothingDiffers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := moving.Run(t.Context(), moving.Config{API: api(t, nil, nil), System: "refit-system", Directions: both, Now: now}, &out); err != nil {
		t.Error(err)
	}
	const want = "from OpenKruise to Refit:\nok       nothing differs in what was read\nfrom Refit to OpenKruise:\nok       nothing differs in what was read\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

// Objects that the user may not read are listed as unread, and everything else is reported.
func TestMissingRightsAreSaid(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	refuse := map[string]error{}
	for _, kind := range []string{"PodList", "SecretList", "NodeList", "NetworkPolicyList", "CloneSetList"} {
		refuse[kind] = forbidden
	}
	var out bytes.Buffer
	err := moving.Run(t.Context(), moving.Config{API: api(t, objects(t), refuse), System: "refit-system", Directions: both, Now: now}, &out)
	if !errors.Is(err, moving.ErrDiffers) || apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	for _, what := range []string{"pods", "Secrets", "Nodes", "NetworkPolicies", "objects of clonesets.apps.kruise.io", "workloads"} {
		if line := "skipped  " + what + ": you may not read them; a role with the verbs get and list for them allows it\n"; !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in:\n%s", line, out.String())
		}
	}
	if !strings.Contains(out.String(), "differs  SidecarSet log: ") {
		t.Errorf("nothing about SidecarSets:\n%s", out.String())
	}
}

// Missing permissions are not a difference.
func TestMissingRightsAloneAreNoFailure(t *testing.T) {
	t.Parallel()
	refuse := map[string]error{"PodList": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))}
	if err := moving.Run(t.Context(), moving.Config{API: api(t, nil, refuse), System: "refit-system", Directions: both, Now: now}, &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func TestFailureToReadIsAnErrorAfterTheReport(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection refused")
	var out bytes.Buffer
	err := moving.Run(t.Context(), moving.Config{API: api(t, nil, map[string]error{"PodList": lost}), System: "refit-system", Directions: both, Format: "json", Now: now}, &out)
	if !errors.Is(err, lost) || errors.Is(err, moving.ErrDiffers) || !strings.Contains(err.Error(), "read pods: ") {
		t.Errorf("error %v", err)
	}
	var report moving.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Unread) != 1 || report.Unread[0].What != "pods" || report.Differences == nil {
		t.Errorf("%+v, %v", report, err)
	}
}

// An error of the API server may have control sequences, which change what a terminal shows.
func TestTextHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	config := moving.Config{API: api(t, nil, map[string]error{"PodList": errors.New("\x1b[2Jlost")}), System: "refit-system", Directions: both, Now: now}
	if err := moving.Run(t.Context(), config, &out); err == nil || !strings.Contains(out.String(), "[2Jlost") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v: %q", err, out.String())
	}
}

// An object with fields of wrong types is reported, and the run continues.
func TestObjectThatCannotBeDecodedIsNamed(t *testing.T) {
	t.Parallel()
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": map[string]any{"name": "odd"}, "spec": map[string]any{"containers": "none"},
	}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	other.Status.Conditions = []corev1.PodCondition{{Type: "KruisePodReady", Status: corev1.ConditionFalse}}
	report := moving.Examine(t.Context(), moving.Config{
		API: api(t, []client.Object{crd("sidecarsets", "apps.kruise.io", "SidecarSet", "v1beta1"), set, other}, nil), System: "refit-system", Directions: both, Now: now,
	})
	if len(report.Unread) != 1 || report.Unread[0].What != "SidecarSet odd" || len(report.Differences) != 2 {
		t.Errorf("%+v", report)
	}
}

// A refit-manager injects nothing in the namespaces that its flag excludes.
func TestNamespacesThatAreExcludedFromInjection(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]bool{"--webhook-excluded-namespaces=quiet,shop": true, "--webhook-excluded-namespaces=quiet": false} {
		manager := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "refit-system", "name": "refit-manager"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "manager", "args": []any{flag}}}}}},
		}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"}}}
		report := moving.Examine(t.Context(), moving.Config{API: api(t, append(objects(t), manager, pod), nil), System: "refit-system", Directions: both, Now: now})
		found := slices.ContainsFunc(report.Differences, func(d openkruise.Entry) bool {
			return strings.Contains(d.Differs, "Refit injects nothing into pods of")
		})
		if found != want {
			t.Errorf("%s: found %t", flag, found)
		}
	}
}

// A refit-manager with the flag for it copies revisions.
func TestRevisionsAreNoDifferenceOnceTheyAreTakenOver(t *testing.T) {
	t.Parallel()
	list := objects(t)
	manager := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "refit-system", "name": "refit-manager"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "manager", "args": []any{"--openkruise-revisions"}}}}}},
	}}
	examine := func(objects []client.Object) bool {
		report := moving.Examine(t.Context(), moving.Config{API: api(t, objects, nil), System: "refit-system", Directions: both, Now: now})
		for _, entry := range report.Differences {
			if entry.Object == "ControllerRevisions of SidecarSets" {
				return true
			}
		}
		return false
	}
	if !examine(list) || examine(append(list, manager)) {
		t.Error("wrong about the revisions")
	}
}

// paged answers as an API server with pages of one pod, two of which have a difference. A protobuf decoder appends to the
// list that it is given.
type paged struct {
	client.Client
	asked []string
}

func (p *paged) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return p.Client.List(ctx, list, options...)
	}
	var given client.ListOptions
	given.ApplyOptions(options)
	p.asked = append(p.asked, given.Continue)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + given.Continue}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "KruisePodReady", Status: corev1.ConditionFalse}}
	pods.Items = append(pods.Items, pod)
	pods.Continue = map[string]string{"": "2", "2": "3"}[given.Continue]
	return nil
}

func TestEveryPageIsReadAndEachObjectLookedAtOnce(t *testing.T) {
	t.Parallel()
	pages := &paged{Client: api(t, nil, nil)}
	report := moving.Examine(t.Context(), moving.Config{API: pages, System: "refit-system", Directions: []openkruise.Direction{openkruise.ToRefit}, Now: now})
	if diff := cmp.Diff([]string{"", "2", "3"}, pages.asked); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if len(report.Differences) != 1 || report.Differences[0].Object != "Pods shop/web-, shop/web-2, shop/web-3" {
		t.Errorf("%+v", report)
	}
}
