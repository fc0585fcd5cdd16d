package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/sidecarset/revision"
)

// reader answers with labels of namespaces, or an error.
type reader struct {
	client.Reader
	labels map[string]map[string]string
	err    error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	labels, ok := r.labels[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	object.SetLabels(labels)
	return nil
}

func handler(sets ...string) *podHandler {
	x := newIndex(nil, Config{Namespace: "refit-system", Logger: slog.New(slog.DiscardHandler)})
	x.publish()
	for _, text := range sets {
		x.set(sidecarSet(text))
	}
	return &podHandler{
		index: x, now: time.Now, reviews: guard.NewSlots(2), log: slog.New(slog.DiscardHandler),
		namespaces: &namespaces{cached: reader{}, live: reader{labels: map[string]map[string]string{"shop": {"team": "a"}, "other": nil}}},
		counts:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pods"}, []string{"result"}),
	}
}

func sidecarSet(text string) *v1beta1.SidecarSet {
	var set v1beta1.SidecarSet
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
		panic(fmt.Sprintf("%v in %s", err, text))
	}
	set.UID = types.UID("uid of " + set.Name)
	return &set
}

// create sends a review as the API server does, and returns the pod that it would store.
func create(t testing.TB, h http.Handler, namespace, pod string) (*corev1.Pod, *admissionv1.AdmissionResponse, int) {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "review", Namespace: namespace, Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Object: runtime.RawExtension{Raw: []byte(pod)},
	}}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, podPath, bytes.NewReader(body)))
	if recorder.Code != http.StatusOK {
		return nil, nil, recorder.Code
	}
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(recorder.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	stored := []byte(pod)
	if answer.Response.Patch != nil {
		patch, err := jsonpatch.DecodePatch(answer.Response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if stored, err = patch.Apply(stored); err != nil {
			t.Fatal(err)
		}
	}
	var got corev1.Pod
	if err := json.Unmarshal(stored, &got); err != nil {
		t.Fatal(err)
	}
	return &got, answer.Response, recorder.Code
}

const webPod = `{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:1"}]}}`

const logSet = "metadata: {name: log}\nspec: {selector: {matchLabels: {app: web}}, containers: [{name: agent, image: agent:1}]}"

func TestPodsAreInjected(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set, namespace, pod string
		containers          int
		refused             string
	}{
		"selected":                        {logSet, "shop", webPod, 2, ""},
		"another label":                   {logSet, "shop", strings.Replace(webPod, `"app":"web"`, `"app":"db"`, 1), 1, ""},
		"mirror pod":                      {logSet, "shop", strings.Replace(webPod, `"labels"`, `"annotations":{"kubernetes.io/config.mirror":"x"},"labels"`, 1), 1, ""},
		"paused":                          {strings.Replace(logSet, "containers", "injectionStrategy: {paused: true}, containers", 1), "shop", webPod, 1, ""},
		"namespace with the label":        {strings.Replace(logSet, "containers", "namespaceSelector: {matchLabels: {team: a}}, containers", 1), "shop", webPod, 2, ""},
		"namespace without it":            {strings.Replace(logSet, "containers", "namespaceSelector: {matchLabels: {team: a}}, containers", 1), "other", webPod, 1, ""},
		"by v1alpha1's name of namespace": {strings.Replace(logSet, "containers", "namespace: other, containers", 1), "shop", webPod, 1, ""},
		"name of a container is taken":    {strings.Replace(logSet, "name: agent", "name: app", 1), "shop", webPod, 0, "the pod has a container app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, response, _ := create(t, handler(tc.set), tc.namespace, tc.pod)
			if tc.refused != "" {
				if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || !strings.Contains(response.Result.Message, tc.refused) ||
					response.Result.Details.Causes[0].Field != "spec.containers" {
					t.Errorf("got %+v", response)
				}
				return
			}
			if !response.Allowed || response.UID != "review" || len(pod.Spec.Containers) != tc.containers {
				t.Errorf("got %+v, %d containers", response, len(pod.Spec.Containers))
			}
			if tc.containers == 1 && response.Patch != nil {
				t.Errorf("the pod is changed: %s", response.Patch)
			}
		})
	}
}

// What cannot be decided is an HTTP error, for which the failurePolicy of the webhook decides, and never "no sidecars".
func TestWhatCannotBeDecidedIsAnError(t *testing.T) {
	t.Parallel()
	unread := handler()
	unread.index.candidates.Store(nil)
	broken := handler(strings.Replace(logSet, "containers", "namespaceSelector: {matchLabels: {team: a}}, containers", 1))
	broken.namespaces.live = reader{err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		handler *podHandler
		pod     string
	}{
		"SidecarSets not read yet": {unread, webPod}, "labels of the namespace unknown": {broken, webPod}, "a pod that is none": {handler(logSet), `{"metadata":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, code := create(t, tc.handler, "shop", tc.pod); code != http.StatusInternalServerError {
				t.Errorf("HTTP status %d", code)
			}
			if n := testutil.ToFloat64(tc.handler.counts.WithLabelValues("failed")); n != 1 {
				t.Errorf("%v reviews counted as failed", n)
			}
		})
	}
	recorder := httptest.NewRecorder()
	handler(logSet).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, podPath, io.LimitReader(neverEnding{}, maxReview+1)))
	if recorder.Code != http.StatusInternalServerError {
		t.Errorf("HTTP status %d for a review without end", recorder.Code)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

// A pinned revision is one that the SidecarSet owns, whatever its name; while it is missing, pods get the latest.
func TestPinnedRevisions(t *testing.T) {
	t.Parallel()
	old := sidecarSet(strings.Replace(logSet, "agent:1", "agent:0", 1))
	r, err := revision.New(old, "refit-system", 1)
	if err != nil {
		t.Fatal(err)
	}
	h := handler(strings.Replace(logSet, "containers", "injectionStrategy: {revision: {revisionName: "+r.Name+"}}, containers", 1))
	image := func() string {
		pod, response, _ := create(t, h, "shop", webPod)
		if !response.Allowed {
			t.Fatal(response.Result)
		}
		return pod.Spec.Containers[0].Image
	}
	if got := image(); got != "agent:1" {
		t.Errorf("without the revision: %s", got)
	}
	foreign := r.DeepCopy()
	foreign.OwnerReferences[0].UID = "another"
	h.index.set(foreign)
	if got := image(); got != "agent:1" {
		t.Errorf("with a revision of somebody else: %s", got)
	}
	h.index.set(r)
	if got := image(); got != "agent:0" {
		t.Errorf("with the revision: %s", got)
	}
	h.index.remove(r)
	if got := image(); got != "agent:1" {
		t.Errorf("after it was deleted: %s", got)
	}
}

func TestDeletedSidecarSetsAreNotInjected(t *testing.T) {
	t.Parallel()
	h := handler(logSet)
	h.index.remove(sidecarSet(logSet))
	if pod, _, _ := create(t, h, "shop", webPod); len(pod.Spec.Containers) != 1 {
		t.Errorf("%d containers", len(pod.Spec.Containers))
	}
}

// BenchmarkReview is a review with 100 SidecarSets of which 2 select the pod.
func BenchmarkReview(b *testing.B) {
	var sets []string
	for i := range 100 {
		app := fmt.Sprintf("app-%d", i)
		if i < 2 {
			app = "web"
		}
		sets = append(sets, fmt.Sprintf("metadata: {name: s%d}\nspec: {selector: {matchLabels: {app: %s}}, containers: [{name: c%d, image: c:1, shareVolumePolicy: {type: enabled}}]}", i, app, i))
	}
	h := handler(sets...)
	for b.Loop() {
		if pod, _, _ := create(b, h, "shop", webPod); len(pod.Spec.Containers) != 3 {
			b.Fatal(len(pod.Spec.Containers))
		}
	}
}
