package podapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/internal/podapi"
)

// sent is what was written last: the subresource, and the patch or the eviction.
type sent struct {
	subresource, patch string
	kind               types.PatchType
	dryRun             bool
	eviction           *policyv1.Eviction
}

func newPodAPI(t *testing.T, last *sent, doing *string, fault error) *podapi.API {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), policyv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	note := func(subresource string, object client.Object, patch client.Patch, dryRun []string) error {
		data, err := patch.Data(object)
		*last = sent{subresource: subresource, patch: string(data), kind: patch.Type(), dryRun: len(dryRun) > 0}
		return errors.Join(err, fault)
	}
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return note("", object, patch, (&client.PatchOptions{}).ApplyOptions(options).DryRun)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return note(subresource, object, patch, (&client.SubResourcePatchOptions{}).ApplyOptions(options).DryRun)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, subresource string, _, body client.Object, _ ...client.SubResourceCreateOption) error {
			eviction, _ := body.(*policyv1.Eviction)
			*last = sent{subresource: subresource, eviction: eviction}
			return fault
		},
	})
	return &podapi.API{Client: api, Live: api, Written: func(resource, what string, err error) error {
		*doing = resource + ": " + what
		return err
	}}
}

var web = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"}}

func TestWritesToAPod(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{nil, errors.New("denied")} {
		var last sent
		var doing string
		pods := newPodAPI(t, &last, &doing, fault)
		for _, subresource := range []string{"", "resize"} {
			_, err := pods.PatchPod(t.Context(), web, subresource, []byte(`{"a":1}`))
			if want := (sent{subresource: subresource, patch: `{"a":1}`, kind: types.StrategicMergePatchType}); last != want || !errors.Is(err, fault) || doing != "pods: patch pod shop/web" {
				t.Errorf("%q: %+v, %q, %v", subresource, last, doing, err)
			}
			doing = ""
			err = pods.TryPatchPod(t.Context(), web, subresource, []byte(`{"b":1}`))
			if want := (sent{subresource: subresource, patch: `{"b":1}`, kind: types.StrategicMergePatchType, dryRun: true}); last != want || !errors.Is(err, fault) || doing != "" {
				t.Errorf("a trial of %q: %+v, counted as %q, %v", subresource, last, doing, err)
			}
		}
		err := pods.SetCondition(t.Context(), client.ObjectKeyFromObject(web), web.UID, &corev1.PodCondition{Type: "Told", Status: corev1.ConditionTrue})
		if last.subresource != "status" || last.kind != types.StrategicMergePatchType || !strings.Contains(last.patch, `"metadata":{"uid":"uid"}`) || !strings.Contains(last.patch, `"type":"Told","status":"True"`) ||
			!errors.Is(err, fault) || doing != "pods: write condition of pod shop/web" {
			t.Errorf("%+v, %q, %v", last, doing, err)
		}
		err = pods.Evict(t.Context(), web)
		if last.subresource != "eviction" || *last.eviction.DeleteOptions.Preconditions.UID != "uid" || !errors.Is(err, fault) || doing != "pods: evict pod web" {
			t.Errorf("%+v, %q, %v", last, doing, err)
		}
	}
}

func TestAPodIsReadFromTheAPIServer(t *testing.T) {
	t.Parallel()
	var last sent
	var doing string
	pods := newPodAPI(t, &last, &doing, nil)
	if err := pods.Client.Create(t.Context(), web.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	pods.Client = nil
	if pod, err := pods.Pod(t.Context(), "shop", "web"); err != nil || pod.UID != "uid" {
		t.Errorf("%+v, %v", pod, err)
	}
	if _, err := pods.Pod(t.Context(), "shop", "gone"); err == nil || !strings.Contains(err.Error(), "get pod shop/gone") {
		t.Errorf("%v", err)
	}
}
