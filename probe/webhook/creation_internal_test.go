package webhook

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/probe/control/compiled"
	"github.com/refit-project/refit/test/kit/reviewed"
)

func marker(namespace, name string) *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	probe := v1alpha1.PodContainerProbe{Name: "idle", ContainerName: "main", PodConditionType: "example.com/" + name}
	probe.Probe.Exec = &corev1.ExecAction{Command: []string{"/idle"}}
	m.Spec.Probes = []v1alpha1.PodContainerProbe{probe}
	return m
}

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func newHandler(t *testing.T, objects ...client.Object) *handler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, node("virtual", map[string]string{"type": "virtual-kubelet"}), node("real", nil))
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &handler{cached: api, nodes: cache.NewNodes(api, api), markers: &compiled.Markers{}, log: slog.New(slog.DiscardHandler)}
}

func created(raw string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "shop", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
	}}
}

// annotationsOf returns the annotations of the pod as it would be stored.
func annotationsOf(t *testing.T, raw string, response admission.Response) map[string]string {
	t.Helper()
	var pod corev1.Pod
	reviewed.Decode(t, []byte(raw), response, &pod)
	return pod.Annotations
}

func TestPodsHaveTheirProbesFromTheBeginning(t *testing.T) {
	t.Parallel()
	const probe = `[{"name":"idle","containerName":"main","probe":{"exec":{"command":["/idle"]}},"podConditionType":"example.com/a"}]`
	want := map[string]string{"kruise.io/podprobe": probe, "kruise.io/podprobemarker-list": "a"}
	for name, tc := range map[string]struct {
		metadata, spec string
		want           map[string]string
		patches        int
	}{
		"selected":                    {`"labels":{"app":"game"}`, "", want, 1},
		"with annotations":            {`"labels":{"app":"game"},"annotations":{"x":"y"}`, "", map[string]string{"x": "y", "kruise.io/podprobe": probe, "kruise.io/podprobemarker-list": "a"}, 2},
		"from another pod":            {`"labels":{"app":"game"},"annotations":{"kruise.io/podprobe":"[]","kruise.io/podprobemarker-list":"a"}`, "", want, 1},
		"not selected":                {`"labels":{"app":"web"}`, "", nil, 0},
		"on a virtual node":           {`"labels":{"app":"game"}`, `,"nodeName":"virtual"`, want, 1},
		"on another node":             {`"labels":{"app":"game"}`, `,"nodeName":"real"`, nil, 0},
		"on a node that is not there": {`"labels":{"app":"game"}`, `,"nodeName":"gone"`, nil, 0},
	} {
		raw := `{"metadata":{` + tc.metadata + `},"spec":{"containers":[{"name":"main"}]` + tc.spec + `}}`
		h := newHandler(t, marker("shop", "a"), marker("other", "b"))
		response := h.Handle(t.Context(), created(raw))
		if diff := cmp.Diff(tc.want, annotationsOf(t, raw, response)); diff != "" || len(response.Patches) != tc.patches {
			t.Errorf("%s: %d patches, want %d (-want +got):\n%s", name, len(response.Patches), tc.patches, diff)
		}
	}
}

func TestPodsWithoutProbesAreLeftAlone(t *testing.T) {
	t.Parallel()
	const raw = `{"metadata":{"labels":{"app":"game"}},"spec":{"containers":[{"name":"other"}]}}`
	update := created(`{"metadata":{"labels":{"app":"game"}},"spec":{"containers":[{"name":"main"}]}}`)
	update.Operation = admissionv1.Update
	part := created(`{"metadata":{"labels":{"app":"game"}},"spec":{"containers":[{"name":"main"}]}}`)
	part.SubResource = "binding"
	for name, tc := range map[string]struct {
		h       *handler
		request admission.Request
	}{
		"no marker":      {newHandler(t), created("not even a pod")},
		"no container":   {newHandler(t, marker("shop", "a")), created(raw)},
		"not a creation": {newHandler(t, marker("shop", "a")), update},
		"a part of one":  {newHandler(t, marker("shop", "a")), part},
	} {
		if response := tc.h.Handle(t.Context(), tc.request); !response.Allowed || len(response.Patches) != 0 {
			t.Errorf("%s: %+v", name, response)
		}
	}
}

type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not complete")
}

// What answers then is control.AllowingWebhook.
func TestAnErrorIsToldToTheClient(t *testing.T) {
	t.Parallel()
	h := newHandler(t, marker("shop", "a"))
	if response := h.Handle(t.Context(), created(strings.Repeat("[", 1000))); response.Allowed {
		t.Errorf("a pod that cannot be read: %+v", response)
	}
	h.cached = broken{}
	if response := h.Handle(t.Context(), created("{}")); response.Allowed || !strings.Contains(response.Result.Message, "not complete") {
		t.Errorf("got %+v", response)
	}
}
