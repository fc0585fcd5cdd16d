package webhook

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/revision"
	"github.com/refit-project/refit/test/kit/reviewed"
)

func admit(t *testing.T, stored, sent string, operation admissionv1.Operation, old string, revisions ...client.Object) admission.Response {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	h := &sidecarSetHandler{decoder: admission.NewDecoder(scheme), log: slog.New(slog.DiscardHandler),
		live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(revisions, sidecarSet(stored))...).Build(), namespaces: []string{"refit-system", "kruise-system"}}
	encode := func(text string) runtime.RawExtension {
		set := sidecarSet(text)
		set.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindSidecarSet}
		raw, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Object: encode(sent)}}
	if old != "" {
		request.OldObject = encode(old)
	}
	return h.Handle(t.Context(), request)
}

const otherSet = "metadata: {name: other}\nspec: {selector: {matchExpressions: [{key: inject, operator: Exists}]}, containers: [{name: agent, image: agent:1}]}"

func TestRefusedSidecarSetsNameTheField(t *testing.T) {
	t.Parallel()
	response := admit(t, otherSet, logSet, admissionv1.Create, "")
	if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
		t.Fatalf("got %+v", response)
	}
	if cause := response.Result.Details.Causes[0]; cause.Field != "spec.containers[0].name" || !strings.Contains(cause.Message, "SidecarSet other") {
		t.Errorf("got %+v", cause)
	}
}

func TestASidecarSetCanBeChangedDespiteAnOldClash(t *testing.T) {
	t.Parallel()
	if response := admit(t, otherSet, strings.Replace(logSet, "agent:1", "agent:2", 1), admissionv1.Update, logSet); !response.Allowed {
		t.Errorf("refused: %v", response.Result)
	}
}

func TestFailurePolicyBecomesALabel(t *testing.T) {
	t.Parallel()
	response := admit(t, "metadata: {name: none}", strings.Replace(logSet, "containers", "injectionStrategy: {failurePolicy: Fail}, containers", 1), admissionv1.Create, "")
	if stored := stored(t, response); stored.Labels[v1beta1.LabelInjectionFailurePolicy] != "Fail" {
		t.Errorf("labels %v", stored.Labels)
	}
}

// stored is logSet as the API server stores it.
func stored(t *testing.T, response admission.Response) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{}
	raw, err := json.Marshal(sidecarSet(logSet))
	if err != nil {
		t.Fatal(err)
	}
	reviewed.Decode(t, raw, response, set)
	return set
}

func TestStoredSidecarSetsHaveDefaultsAndHashes(t *testing.T) {
	t.Parallel()
	set := stored(t, admit(t, "metadata: {name: none}", logSet, admissionv1.Create, ""))
	if set.Annotations[v1beta1.AnnotationSidecarSetHash] != revision.HashesOf(&set.Spec).Full || set.Spec.Containers[0].ImagePullPolicy != "IfNotPresent" {
		t.Errorf("stored %+v", set)
	}
	if response := admit(t, "metadata: {name: none}", encoded(t, set), admissionv1.Update, logSet); !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("what is complete is changed: %+v", response)
	}
}

func encoded(t *testing.T, set *v1beta1.SidecarSet) string {
	t.Helper()
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAPinnedRevisionHasToExist(t *testing.T) {
	t.Parallel()
	owner := sidecarSet(logSet)
	known := func(namespace string) *appsv1.ControllerRevision {
		r, err := revision.New(owner, namespace, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.Labels[v1beta1.LabelSidecarSetCustomVersion] = "one"
		return r
	}
	name := known("").Name
	pinned := func(pin string) string {
		set := sidecarSet(strings.Replace(logSet, "containers", "injectionStrategy: {revision: "+pin+"}, containers", 1))

		return encoded(t, set)
	}
	for pin, want := range map[string]string{
		"{revisionName: " + name + "}":                     "",
		"{customVersion: one}":                             "",
		"{revisionName: other}":                            "spec.injectionStrategy.revision.revisionName",
		"{customVersion: two}":                             "spec.injectionStrategy.revision.customVersion",
		"{customVersion: two, missingPolicy: Latest}":      "",
		"{revisionName: other, customVersion: one}":        "spec.injectionStrategy.revision.revisionName",
		"{revisionName: other, missingPolicy: Fail}":       "",
		"{revisionName: '', customVersion: one}":           "",
		"{revisionName: '', customVersion: somethingElse}": "spec.injectionStrategy.revision.customVersion",
	} {
		for _, namespace := range []string{"refit-system", "kruise-system"} {
			response := admit(t, "metadata: {name: none}", pinned(pin), admissionv1.Update, encoded(t, owner), known(namespace))
			if response.Allowed != (want == "") || want != "" && response.Result.Details.Causes[0].Field != want {
				t.Errorf("%s with a revision in %s: %+v", pin, namespace, response.Result)
			}
		}
		if response := admit(t, "metadata: {name: none}", pinned(pin), admissionv1.Update, pinned(pin)); !response.Allowed {
			t.Errorf("%s cannot be changed elsewhere: %+v", pin, response.Result)
		}
	}
	if response := admit(t, "metadata: {name: none}", pinned("{customVersion: one}"), admissionv1.Create, ""); response.Allowed {
		t.Error("created with a revision that cannot exist")
	}
	stranger := known("refit-system")
	stranger.OwnerReferences[0].UID = "another"
	if response := admit(t, "metadata: {name: none}", pinned("{customVersion: one}"), admissionv1.Update, encoded(t, owner), stranger); response.Allowed {
		t.Error("pinned to the revision of another SidecarSet")
	}
}

func TestPinnedRevisionsOfOpenKruiseAreInjected(t *testing.T) {
	t.Parallel()
	x := newIndex(nil, Config{Namespace: "refit-system", OpenKruise: "kruise-system", Logger: slog.New(slog.DiscardHandler)})
	set := sidecarSet(logSet)
	stable, err := revision.New(set, "kruise-system", 1)
	if err != nil {
		t.Fatal(err)
	}
	stable.Labels[v1beta1.LabelSidecarSetCustomVersion] = "stable"
	set.Spec.Containers[0].Image = "agent:2"
	set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: new("stable")}
	x.candidates.Store(&[]*choice.Candidate{}) // the caches are complete
	x.set(set)
	pinned := func() *inject.Set { return (*x.candidates.Load())[0].Pinned }
	if pinned() != nil {
		t.Error("a revision is pinned before it is known")
	}
	x.set(stable)
	if pinned() == nil {
		t.Error("the revision in OpenKruise's namespace is not found")
	}
	own := revision.Copy(set, "refit-system", stable)
	own.Labels[v1beta1.LabelSidecarSetCustomVersion] = "other"
	x.set(own)
	if pinned() != nil {
		t.Error("the copy does not count")
	}
	x.remove(own)
	if pinned() == nil {
		t.Error("the revision in OpenKruise's namespace was removed with its copy")
	}
}
