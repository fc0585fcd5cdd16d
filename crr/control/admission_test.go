package control

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	crradmission "github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/test/kit/reviewed"
)

func newAdmissionHandler(t *testing.T, objects ...client.Object) *admissionHandler {
	t.Helper()
	reader := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).Build()
	return &admissionHandler{
		decoder: admission.NewDecoder(testScheme(t)), pods: reader, nodes: cache.NewNodes(reader, reader),
		now: func() time.Time { return noon }, log: discard, tracer: noop.Tracer{},
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "answers"}, []string{"operation", "code"}),
	}
}

func review(operation admissionv1.Operation, object, old string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Namespace: "shop", Name: "r", UserInfo: authenticationv1.UserInfo{Username: "alice"},
		Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}}
}

const userJSON = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"r","namespace":"shop",
	"annotations":{"refit.dev/reason":"node pressure","refit.dev/requested-by":"system:admin"}},
	"spec":{"podName":"web","containers":[{"name":"app"}],"ofTheFuture":1}}`

// Nothing else says that the pod stays in its Services.
func TestDrainOfAPodWithoutReadinessGateIsWarnedOf(t *testing.T) {
	t.Parallel()
	drained := strings.Replace(userJSON, `"podName":"web",`, `"podName":"web","strategy":{"unreadyGracePeriodSeconds":5},`, 1)
	gated, without := testPod(), testPod()
	gated.Spec.ReadinessGates, without.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}, nil
	for name, tt := range map[string]struct {
		pod      client.Object
		sent     string
		warnings int
	}{"without the gate": {without, drained, 1}, "with the gate": {gated, drained, 0}, "no drain": {testPod(), userJSON, 0}} {
		response := newAdmissionHandler(t, tt.pod, testNode()).Handle(t.Context(), review(admissionv1.Create, tt.sent, ""))
		if !response.Allowed || len(response.Warnings) != tt.warnings {
			t.Errorf("%s: %v, warnings %q", name, response.Result, response.Warnings)
		}
		for _, warning := range response.Warnings {
			if !strings.Contains(warning, "unreadyGracePeriodSeconds has no effect: pod web has no readiness gate KruisePodReady") {
				t.Errorf("%s: %q", name, warning)
			}
		}
	}
}

func TestCreatedRequestIsPatched(t *testing.T) {
	t.Parallel()
	a := newAdmissionHandler(t, testPod(), testNode())
	response := a.Handle(t.Context(), review(admissionv1.Create, userJSON, ""))
	var got v1beta1.ContainerRecreateRequest
	result := reviewed.Decode(t, []byte(userJSON), response, &got)
	want := storedRequest(t)
	want.UID, want.Generation, want.CreationTimestamp = "", 0, got.CreationTimestamp
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("patched (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(result), `"ofTheFuture":1`) {
		t.Error("a field that the types do not know is lost")
	}
	if n := testutil.ToFloat64(a.answers.WithLabelValues("CREATE", "200")); n != 1 {
		t.Errorf("counted %v answers", n)
	}
}

func TestAdmissionResponses(t *testing.T) {
	t.Parallel()
	stored, err := json.Marshal(storedRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	pending := testPod()
	pending.Spec.NodeName = ""
	for name, tc := range map[string]struct {
		objects []client.Object
		request admission.Request
		code    int32 // 0 if allowed without a patch
		reason  string
		words   string
	}{
		"no such pod":     {request: review(admissionv1.Create, userJSON, ""), code: 400, reason: "BadRequest", words: "spec.podName: no found Pod named web"},
		"pending pod":     {objects: []client.Object{pending}, request: review(admissionv1.Create, userJSON, ""), code: 400, words: "pending Pod"},
		"no such node":    {objects: []client.Object{testPod()}, request: review(admissionv1.Create, userJSON, ""), code: 400, words: "node-1"},
		"a path for name": {request: review(admissionv1.Create, strings.Replace(userJSON, `"web"`, `"../../nodes/x"`, 1), ""), code: 400, words: "no name of a pod"},
		"not JSON":        {request: review(admissionv1.Create, "{", ""), code: 400},
		"spec changed":    {request: review(admissionv1.Update, userJSON, string(stored)), code: 403, reason: "Forbidden", words: "immutable"},
		"nothing changed": {request: review(admissionv1.Update, string(stored), string(stored))},
		"old not JSON":    {request: review(admissionv1.Update, string(stored), "["), code: 400},
		"deletion":        {request: review(admissionv1.Delete, "", string(stored))},
		"status": {request: admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Update, SubResource: "status", Object: runtime.RawExtension{Raw: []byte("{")},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := newAdmissionHandler(t, tc.objects...)
			response := handler.Handle(t.Context(), tc.request)
			if tc.code == 0 {
				if !response.Allowed || len(response.Patches) > 0 {
					t.Errorf("allowed %t with %v", response.Allowed, response.Patches)
				}
				return
			}
			if response.Allowed || response.Result.Code != tc.code || !strings.Contains(response.Result.Message, tc.words) {
				t.Errorf("allowed %t, result %+v", response.Allowed, response.Result)
			}
			if n := testutil.ToFloat64(handler.answers.WithLabelValues(string(tc.request.Operation), strconv.Itoa(int(tc.code)))); n != 1 {
				t.Errorf("%g answers are counted", n)
			}
			if tc.reason != "" && string(response.Result.Reason) != tc.reason {
				t.Errorf("reason %s, want %s", response.Result.Reason, tc.reason)
			}
		})
	}
}

// The manager names who has asked for it. Nobody else may, also where the manager's own name is not known.
func TestOnlyTheManagerNamesAnotherRequester(t *testing.T) {
	t.Parallel()
	const manager = "system:serviceaccount:refit-system:refit-manager"
	for name, tt := range map[string]struct{ self, user, want string }{
		"the manager":       {manager, manager, "system:admin"},
		"a user":            {manager, "alice", "alice"},
		"its name is none":  {"", "alice", "alice"},
		"nobody is nobody":  {"", "", ""},
		"a similar account": {manager, manager + "2", manager + "2"},
	} {
		a := newAdmissionHandler(t, testPod(), testNode())
		a.self = tt.self
		asked := review(admissionv1.Create, userJSON, "")
		asked.UserInfo.Username = tt.user
		_, admitted, _, err := a.create(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		if got := admitted.Annotations[v1beta1.AnnotationRequestedBy]; got != tt.want {
			t.Errorf("%s: requested by %q, want %q", name, got, tt.want)
		}
	}
}

func TestALookUpThatFailsIsNotTheUsersFault(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*admissionHandler, client.Reader){
		"pod":  func(a *admissionHandler, broken client.Reader) { a.pods = broken },
		"node": func(a *admissionHandler, broken client.Reader) { a.nodes = cache.NewNodes(broken, broken) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAdmissionHandler(t, testPod(), testNode())
			fail(a, failingReader{err: apierrors.NewServiceUnavailable("down")})
			response := a.Handle(t.Context(), review(admissionv1.Create, userJSON, ""))
			if response.Allowed || response.Result.Code != http.StatusInternalServerError || !strings.Contains(response.Result.Message, "find "+name) {
				t.Errorf("allowed %t, result %+v", response.Allowed, response.Result)
			}
		})
	}
}

func TestNodesAreLookedUpLiveBeforeRefusal(t *testing.T) {
	t.Parallel()
	a := newAdmissionHandler(t, testPod(), testNode())
	a.nodes = cache.NewNodes(fake.NewClientBuilder().WithScheme(testScheme(t)).Build(), a.pods)
	if response := a.Handle(t.Context(), review(admissionv1.Create, userJSON, "")); !response.Allowed {
		t.Errorf("refused: %v", response.Result)
	}
}

// FuzzHandle: no review makes the webhook panic, and what it allows is valid.
func FuzzHandle(f *testing.F) {
	stored, _ := json.Marshal(userRequest())
	f.Add(userJSON, "")
	f.Add(string(stored), string(stored))
	f.Add(`{"metadata":{"annotations":null},"spec":{"containers":[{"name":"a","preStop":{"httpGet":{"port":{}}}}]}}`, "null")
	a := &admissionHandler{
		decoder: admission.NewDecoder(testScheme(f)), pods: podReader{}, nodes: cache.NewNodes(podReader{}, podReader{}), now: func() time.Time { return noon }, log: discard, tracer: noop.Tracer{},
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "answers"}, []string{"operation", "code"}),
	}
	f.Fuzz(func(t *testing.T, object, old string) {
		created := a.Handle(context.Background(), review(admissionv1.Create, object, ""))
		updated := a.Handle(context.Background(), review(admissionv1.Update, object, old))
		var request v1beta1.ContainerRecreateRequest
		if created.Allowed && json.Unmarshal([]byte(object), &request) == nil && crradmission.CheckRequest(&request) != nil {
			t.Errorf("allowed %s", object)
		}
		for _, response := range []admission.Response{created, updated} {
			if !response.Allowed && response.Result.Message == "" {
				t.Error("refused without a word")
			}
		}
	})
}

// podReader has a pod of every name, on a node of every name.
type podReader struct{ client.Reader }

func (podReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if pod, ok := into.(*corev1.Pod); ok {
		testPod().DeepCopyInto(pod)
	}
	return nil
}
