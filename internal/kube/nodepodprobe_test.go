package kube_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/kube"
)

const (
	discoverAlpha = "GET /apis/apps.kruise.io/v1alpha1"
	pathProbes    = "/apis/apps.kruise.io/v1alpha1/nodepodprobes"
)

func servedProbes() metav1.APIResourceList {
	return metav1.APIResourceList{GroupVersion: "apps.kruise.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "nodepodprobes"}}}
}

func nodePodProbe() v1alpha1.NodePodProbe {
	return v1alpha1.NodePodProbe{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps.kruise.io/v1alpha1", Kind: "NodePodProbe"},
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "u1", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
	}
}

func TestNodePodProbesMayNotBeServed(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]map[string]any{
		"no group":       {},
		"requests alone": {discoverAlpha: served("v1alpha1")},
	} {
		client, _ := newClient(t, answers)
		if _, err := client.NodePodProbes(t.Context()); !errors.Is(err, kube.ErrProbesNotServed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNodePodProbeOfTheNodeAlone(t *testing.T) {
	t.Parallel()
	client, server := newClient(t, map[string]any{
		discoverAlpha: servedProbes(),
		"GET " + pathProbes: v1alpha1.NodePodProbeList{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps.kruise.io/v1alpha1", Kind: "NodePodProbeList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []v1alpha1.NodePodProbe{nodePodProbe()},
		},
	})
	probes, err := client.NodePodProbes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	informer, err := probes.Informer("node-1")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	defer func() { <-done }()
	stop := make(chan struct{})
	defer close(stop)
	go func() { defer close(done); informer.Run(stop) }()
	expired := make(chan struct{})
	timer := time.AfterFunc(20*time.Second, func() { close(expired) })
	defer timer.Stop()
	if !cache.WaitForCacheSync(expired, informer.HasSynced) {
		t.Fatalf("not synced: %s", server.all())
	}
	object, found, err := informer.GetStore().GetByKey("node-1")
	if err != nil || !found || object.(*v1alpha1.NodePodProbe).ManagedFields != nil {
		t.Errorf("cached: %+v, %v", object, err)
	}
	if !strings.Contains(server.all(), "fieldSelector=metadata.name%3Dnode-1") {
		t.Errorf("asked %s", server.all())
	}
}

func TestProbeStatusIsReplacedOnThisObjectOnly(t *testing.T) {
	t.Parallel()
	status := v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		Name: "a", Namespace: "shop", UID: "u", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "m#p", State: v1alpha1.ProbeSucceeded}},
	}}}
	for name, tt := range map[string]struct {
		status v1alpha1.NodePodProbeStatus
		answer any
		body   string
		check  func(error) bool
	}{
		"states": {status, nodePodProbe(), `{"metadata":{"uid":"u1"},"status":{"podProbeStatuses":[{"name":"a",`, func(err error) bool { return err == nil }},
		"none":   {v1alpha1.NodePodProbeStatus{}, nodePodProbe(), `{"metadata":{"uid":"u1"},"status":{"podProbeStatuses":null}}`, func(err error) bool { return err == nil }},
		"delayed": {v1alpha1.NodePodProbeStatus{Conditions: []metav1.Condition{{Type: "Delayed", Status: "True", Reason: "R"}}}, nodePodProbe(),
			`"conditions":[{"type":"Delayed","status":"True",`, func(err error) bool { return err == nil }},
		"another": {status, http.StatusConflict, `"uid":"u1"`, apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := newClient(t, map[string]any{discoverAlpha: servedProbes(), "PATCH " + pathProbes + "/node-1/status": tt.answer})
			probes, err := client.NodePodProbes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			object := nodePodProbe()
			if _, err := probes.WriteStatus(t.Context(), &object, tt.status); !tt.check(err) {
				t.Errorf("error %v", err)
			}
			if !strings.Contains(server.all(), tt.body) {
				t.Errorf("asked %s, want %s", server.all(), tt.body)
			}
		})
	}
}
