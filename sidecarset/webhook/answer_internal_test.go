package webhook

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/revision"
)

// The webhook's configuration may be wider than it should be: what it is called for otherwise passes as it is.
func TestOnlyPodsThatAreCreatedAreInjected(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*admissionv1.AdmissionRequest){
		"created":       func(*admissionv1.AdmissionRequest) {},
		"changed":       func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update },
		"deleted":       func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete },
		"a ReplicaSet":  func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "replicasets" },
		"a subresource": func(r *admissionv1.AdmissionRequest) { r.SubResource = "eviction" },
	} {
		h := handler(logSet)
		request := &admissionv1.AdmissionRequest{Namespace: "shop", Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}}
		request.Object.Raw = []byte(webPod)
		change(request)
		response, err := h.answer(t.Context(), request)
		if err != nil || !response.Allowed || (len(response.Patch) > 0) != (name == "created") {
			t.Errorf("%s: %+v, %v", name, response, err)
		}
	}
}

func TestReviewsAreCountedByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	gone := strings.Replace(logSet, "containers", "injectionStrategy: {revision: {revisionName: gone, missingPolicy: Skip}}, containers", 1)
	for want, tc := range map[string]struct{ set, pod string }{
		"injected":  {logSet, webPod},
		"unmatched": {logSet, strings.Replace(webPod, `"app":"web"`, `"app":"db"`, 1)},
		"refused":   {strings.Replace(logSet, "name: agent", "name: app", 1), webPod},
		"skipped":   {gone, webPod},
	} {
		h := handler(tc.set)
		create(t, h, "shop", tc.pod)
		for _, result := range []string{"injected", "unmatched", "refused", "skipped", "failed"} {
			if n := testutil.ToFloat64(h.counts.WithLabelValues(result)); (n == 1) != (result == want) || n > 1 {
				t.Errorf("%s: %g are counted as %s", want, n, result)
			}
		}
	}
}

// A revision replaces all that it keeps, and nothing else.
func TestAPinnedRevisionIsInjectedAsAWhole(t *testing.T) {
	t.Parallel()
	content := sidecarSet(`
metadata: {name: log}
spec:
  containers: [{name: old, image: old:1}]
  initContainers: [{name: init, image: init:1}]
  volumes: [{name: data, emptyDir: {}}]
  imagePullSecrets: [{name: pull}]
  patchPodMetadata: [{patchPolicy: Retain, annotations: {a: b}}]
`)
	content.Spec.PodVolumes, content.Spec.PatchContainers = []string{"claim"}, []v1beta1.SidecarSetPatchContainer{{}}
	newest := sidecarSet(logSet)
	got := withContent(newest, &content.Spec)
	want := content.DeepCopy()
	want.Spec.Selector = newest.Spec.Selector
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if newest.Spec.Containers[0].Name != "agent" {
		t.Error("the SidecarSet is changed, which is the cache's")
	}
}

// A revision that cannot be read counts as missing.
func TestAPinnedRevisionThatCannotBeReadIsNotInjected(t *testing.T) {
	t.Parallel()
	stored, err := revision.New(sidecarSet(logSet), "refit-system", 1)
	if err != nil {
		t.Fatal(err)
	}
	stored.Data.Raw = []byte("{")
	h := handler(strings.Replace(logSet, "containers", "injectionStrategy: {revision: {revisionName: "+stored.Name+"}}, containers", 1))
	h.index.set(stored)
	if pod, _, code := create(t, h, "shop", webPod); code != http.StatusOK || len(pod.Spec.Containers) != 2 {
		t.Errorf("HTTP status %d, %+v", code, pod)
	}
}

// The annotation of a pod names the revision of its sidecars, by which the controller knows their version.
func TestTheRevisionIsThatOfTheStatusOnceItIsOfTheSpec(t *testing.T) {
	t.Parallel()
	x := newIndex(nil, Config{Namespace: "refit-system", Logger: slog.New(slog.DiscardHandler)})
	set := sidecarSet(logSet)
	set.Generation = 2
	computed := x.revisionName(set)
	if !strings.HasPrefix(computed, "log-") {
		t.Fatalf("computed %q", computed)
	}
	for name, tt := range map[string]struct {
		status v1beta1.SidecarSetStatus
		want   string
	}{
		"seen":            {v1beta1.SidecarSetStatus{ObservedGeneration: 2, LatestRevision: "log-x"}, "log-x"},
		"of an older one": {v1beta1.SidecarSetStatus{ObservedGeneration: 1, LatestRevision: "log-x"}, computed},
		"without a name":  {v1beta1.SidecarSetStatus{ObservedGeneration: 2}, computed},
	} {
		set.Status = tt.status
		if got := x.revisionName(set); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Each change of one SidecarSet would have all others prepared again.
func TestSidecarSetsThatHaveNotChangedArePreparedOnce(t *testing.T) {
	t.Parallel()
	h := handler(logSet, strings.Replace(otherSet, "name: agent", "name: second", 1))
	before := *h.index.candidates.Load()
	h.index.set(sidecarSet(strings.Replace(logSet, "agent:1", "agent:2", 1)))
	after := *h.index.candidates.Load()
	if len(after) != 2 || after[0] == before[0] || after[1] != before[1] {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestContainersAreInjectedInTheOrderOfTheNames(t *testing.T) {
	t.Parallel()
	var sets, want []string
	for _, name := range []string{"d", "b", "e", "a", "c"} {
		sets = append(sets, strings.NewReplacer("log", name, "agent", name).Replace(logSet))
		want = append(want, name)
	}
	slices.Sort(want)
	pod, _, _ := create(t, handler(sets...), "shop", webPod)
	var got []string
	for _, c := range pod.Spec.Containers {
		if c.Name != "app" {
			got = append(got, c.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("containers %v, want %v", got, want)
	}
}

// The labels of the namespace are read once, and only where they decide.
func TestLabelsOfANamespaceAreReadOnlyWhereTheyDecide(t *testing.T) {
	t.Parallel()
	byNamespace := strings.Replace(logSet, "containers", "namespaceSelector: {matchLabels: {team: a}}, containers", 1)
	h := handler(strings.Replace(byNamespace, "app: web", "app: db", 1), strings.NewReplacer("log", "second", "agent", "second").Replace(logSet))
	h.namespaces.cached, h.namespaces.live = panicking{}, panicking{}
	if pod, _, code := create(t, h, "shop", webPod); code != http.StatusOK || len(pod.Spec.Containers) != 2 {
		t.Errorf("HTTP status %d, %+v", code, pod)
	}
	h = handler(byNamespace)
	h.namespaces = &namespaces{cached: reader{labels: map[string]map[string]string{"shop": {"team": "a"}}}, live: panicking{}}
	if pod, _, _ := create(t, h, "shop", webPod); !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "agent" }) {
		t.Error("the API server is asked for what the cache has")
	}
}

func TestASubresourceOfASidecarSetIsNotChecked(t *testing.T) {
	t.Parallel()
	h := sidecarSetReviews(t)
	request := sidecarSetReview(`{"spec":1}`, "{}")
	if request.SubResource = "status"; !h.Handle(t.Context(), request).Allowed {
		t.Error("refused")
	}
	if request.SubResource = ""; h.Handle(t.Context(), request).Allowed {
		t.Error("one that is none is allowed")
	}
}

func TestAValueOfTheWrongTypeIsToldByItsField(t *testing.T) {
	t.Parallel()
	sent := strings.Replace(strings.Replace(setOf, "QUANTITY", "1", 1), `"agent:1"`, "7", 1)
	response := sidecarSetReviews(t).Handle(t.Context(), sidecarSetReview(sent, ""))
	if response.Allowed || response.Result.Code != http.StatusBadRequest || !strings.Contains(response.Result.Message, `spec.containers.image: Invalid value: "number": must be of type string`) {
		t.Errorf("%+v", response.Result)
	}
}
