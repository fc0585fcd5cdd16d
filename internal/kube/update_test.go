package kube_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kube"
)

const podPath = "/api/v1/namespaces/shop/pods/web"

func webPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: "7"},
	}
}

func TestPodIsPatchedOrOnlyTried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		subresource, path string
		dry               bool
		answer            any
		check             func(error) bool
	}{
		"pod":               {path: podPath, check: func(err error) bool { return err == nil }},
		"resize":            {subresource: "resize", path: podPath + "/resize", check: func(err error) bool { return err == nil }},
		"tried":             {path: podPath, dry: true, check: func(err error) bool { return err == nil }},
		"changed by others": {path: podPath, answer: http.StatusConflict, check: apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := test.answer
			if answer == nil {
				answer = webPod()
			}
			client, server := newClient(t, map[string]any{"PATCH " + test.path: answer})
			var err error
			if test.dry {
				err = client.TryPatchPod(t.Context(), webPod(), test.subresource, []byte(`{"a":1}`))
			} else {
				_, err = client.PatchPod(t.Context(), webPod(), test.subresource, []byte(`{"a":1}`))
			}
			if !test.check(err) {
				t.Error(err)
			}
			asked := server.all()
			if dry := strings.Contains(asked, "dryRun=All"); dry != test.dry || !strings.Contains(asked, `{"a":1}`) {
				t.Errorf("asked %s", asked)
			}
		})
	}
}

func TestTemplateOfAnOwner(t *testing.T) {
	t.Parallel()
	workload := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app:1"}}}}}}
	for name, test := range map[string]struct {
		owner  metav1.OwnerReference
		path   string
		answer any
		want   string // in the error; empty: none
		is     error
	}{
		"of a group":        {owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}, path: "/apis/apps/v1/namespaces/shop/replicasets/web", answer: workload},
		"of the core group": {owner: metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "web"}, path: "/api/v1/namespaces/shop/replicationcontrollers/web", answer: workload},
		"without one":       {owner: metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "node-1"}, path: "/api/v1/namespaces/shop/nodes/node-1", answer: map[string]any{}, want: "owner Node node-1", is: kube.ErrNoTemplate},
		"may not be read":   {owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}, want: "owner ReplicaSet web"},
		"malformed version": {owner: metav1.OwnerReference{APIVersion: "a/b/c", Kind: "X", Name: "web"}, want: "owner X web"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _ := newClient(t, map[string]any{"GET " + test.path: test.answer})
			template, err := client.Template(t.Context(), "shop", test.owner)
			if test.want == "" {
				if err != nil || template.Spec.Containers[0].Image != "app:1" {
					t.Errorf("%+v, %v", template, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// Reported container state costs memory on every node: it is kept only for pods that are updated in place.
func TestPodsThatAreUpdatedInPlace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"a pod of a Deployment": {func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1"}} }, false},
		"a pod of a CloneSet": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1"}}
		}, true},
		"another readiness gate": {func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
		}, false},
		"the readiness gate": {func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
		}, true},
		"injected by a SidecarSet": {func(p *corev1.Pod) { p.Annotations = map[string]string{"kruise.io/sidecarset-hash": "{}"} }, true},
		"updated before":           {func(p *corev1.Pod) { p.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: "{}"} }, true},
		"another annotation":       {func(p *corev1.Pod) { p.Annotations = map[string]string{"example.com/a": "b"} }, false},
	} {
		pod := webPod()
		test.change(pod)
		if got := kube.UpdatedInPlace(pod); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestRequestIsCreatedAndReadInEitherVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			path := "/apis/apps.kruise.io/" + version + "/namespaces/shop/containerrecreaterequests"
			stored := object(version, "ContainerRecreateRequest", "again", map[string]any{"spec": map[string]any{"podName": "web"}, "status": map[string]any{"phase": "Completed"}})
			client, server := newClient(t, map[string]any{"GET /apis/apps.kruise.io/" + version: served(version), "POST " + path: stored, "GET " + path + "/again": stored})
			requests, err := client.Requests(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := requests.Create(t.Context(), request()); err != nil {
				t.Error(err)
			}
			got, err := requests.Get(t.Context(), "shop", "again")
			if err != nil || got.Spec.PodName != "web" || got.Status.Phase != v1beta1.ContainerRecreateRequestCompleted {
				t.Errorf("read %+v, %v", got, err)
			}
			if _, err := requests.Get(t.Context(), "shop", "absent"); !apierrors.IsNotFound(err) {
				t.Errorf("a request that does not exist: %v", err)
			}
			if !strings.Contains(server.all(), "POST "+path) {
				t.Errorf("asked %s", server.all())
			}
		})
	}
}
