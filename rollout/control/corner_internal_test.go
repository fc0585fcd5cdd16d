package control

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/rollout"
	"github.com/refit-project/refit/test/kit/recorder"
)

func TestEndsAreCountedByWhatTriggeredThem(t *testing.T) {
	t.Parallel()
	for annotation, want := range map[string]string{
		"": "User", "RestartSchedule/nightly": "RestartSchedule", "ConfigMap/settings": "ConfigMap", "Secret/password": "Secret",
		"of-no-kind": "User",
	} {
		ended := object()
		ended.Annotations = map[string]string{v1alpha1.AnnotationTrigger: annotation}
		a := newAPIServer(t, deployment(), ended)
		a.settle() // without pods
		condition := a.rollout().Status.Conditions
		if n := testutil.ToFloat64(a.reconciler.ended.WithLabelValues("succeeded", v1alpha1.ReasonNoPods, want)); n != 1 || testutil.CollectAndCount(a.reconciler.ended) != 1 {
			t.Errorf("%q: counted %v as of %s, %+v", annotation, n, want, condition)
		}
	}
}

func TestPodsThatAreRestartedTogetherAreOneEvent(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), podOf("web-abc", 1), podOf("web-abc", 2), object(func(s *v1alpha1.RestartRolloutSpec) { s.MaxUnavailable = new(intstr.FromInt32(2)) }))
	a.settle()
	recorder.Want(t, a.events, "Normal RestartStarted 2 pods are being restarted; 0 of 3 have been")
}

func TestARolloutThatIsBeingDeletedRestartsNothing(t *testing.T) {
	t.Parallel()
	leaving := object()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: noon}, []string{"test/keep"}
	a := newAPIServer(t, deployment(), podOf("web-abc", 0), leaving)
	if a.settle(); len(a.pods()) != 0 {
		t.Errorf("%v", a.pods())
	}
}

// pages is an API server that has one request on each page.
type pages struct {
	client.Reader
	names []string
}

func (p pages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	if asked.Limit != cache.LivePage || asked.Namespace != "shop" {
		return errors.New("not a page of the namespace")
	}
	at := 0
	if asked.Continue != "" {
		at, _ = strconv.Atoi(asked.Continue)
	}
	page := list.(*v1beta1.ContainerRecreateRequestList)
	page.Items = []v1beta1.ContainerRecreateRequest{{ObjectMeta: metav1.ObjectMeta{Name: p.names[at]}}}
	if at+1 < len(p.names) {
		page.Continue = strconv.Itoa(at + 1)
	}
	return nil
}

func TestRequestsOfAllPagesAreRead(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t)
	a.reconciler.live = cache.Paged(pages{names: []string{"a", "b", "c"}})
	requests, err := a.reconciler.requests(t.Context(), a.reconciler.live, "shop")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, request := range requests {
		names = append(names, request.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A rollout that somebody else has created has no part in a schedule.
func TestAScheduleWaitsForNoRolloutOfOthers(t *testing.T) {
	t.Parallel()
	running := object()
	a := newAPIServer(t, running, hourly())
	if _, err := a.schedule(); err != nil || len(a.rolloutNames()) != 2 {
		t.Errorf("%v, %v", err, a.rolloutNames())
	}
	recorder.Want(t, a.events, "Normal RolloutCreated ")
}

func TestAScheduleRecordsWhoHasCreatedIt(t *testing.T) {
	t.Parallel()
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	h := scheduleAdmission(admission.NewDecoder(kinds), Config{Logger: slog.New(slog.DiscardHandler)})
	const valid = `{"apiVersion":"refit.dev/v1alpha1","kind":"RestartSchedule","metadata":{"name":"nightly"},"spec":{"schedule":"0 3 * * *","rolloutTemplate":{"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}}}`
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "shop", UserInfo: authenticationv1.UserInfo{Username: "alice"}, Object: runtime.RawExtension{Raw: []byte(valid)},
	}}
	response := h.Handle(t.Context(), request)
	if !response.Allowed || len(response.Patches) != 1 || response.Patches[0].Path != "/metadata/annotations" {
		t.Fatalf("%+v", response)
	}
	if diff := cmp.Diff(any(map[string]any{v1beta1.AnnotationRequestedBy: "alice"}), response.Patches[0].Value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	request.Object.Raw = []byte(`{"spec":1}`)
	if response := h.Handle(t.Context(), request); response.Allowed || response.Result.Code != 400 {
		t.Errorf("%+v", response)
	}
	request.Operation, request.Object.Raw, request.OldObject.Raw = admissionv1.Update, []byte(valid), []byte(`{"spec":1}`)
	if response := h.Handle(t.Context(), request); response.Allowed || response.Result.Code != 400 {
		t.Errorf("an update of what cannot be read: %+v", response)
	}
}

// It is a fault of the manager, not of who has sent the object.
func TestAnErrorThatIsNoRefusalIsOneOfTheServer(t *testing.T) {
	t.Parallel()
	if response := refused(errors.New("out of order")); response.Allowed || response.Result.Code != 500 {
		t.Errorf("%+v", response)
	}
	if response := refused(&rollout.InvalidError{Field: "spec", Message: "no"}); response.Result.Code != 400 || response.Result.Status != metav1.StatusFailure || response.Result.Reason != metav1.StatusReasonBadRequest {
		t.Errorf("%+v", response)
	}
}
