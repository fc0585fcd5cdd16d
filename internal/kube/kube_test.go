package kube_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const requestPath = "/namespaces/shop/containerrecreaterequests/again/status"

func TestRequestsUseTheNewestServedVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		versions   []string
		want       string // version, empty for none
		conditions bool
	}{
		"both":                  {versions: []string{"v1alpha1", "v1beta1"}, want: "v1beta1", conditions: true},
		"OpenKruise 1.9":        {versions: []string{"v1alpha1"}, want: "v1alpha1"},
		"CRD not installed yet": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := map[string]any{}
			for _, version := range tt.versions {
				answers["GET /apis/apps.kruise.io/"+version] = served(version)
			}
			answers["PATCH /apis/apps.kruise.io/"+tt.want+requestPath] = map[string]any{
				"apiVersion": "apps.kruise.io/" + tt.want, "kind": "ContainerRecreateRequest", "metadata": map[string]any{"name": "again", "resourceVersion": "8"},
				"spec": map[string]any{"podName": "web"}, "status": map[string]any{"phase": "Recreating"},
			}
			client, _ := newClient(t, answers)
			requests, err := client.Requests(t.Context())
			if tt.want == "" {
				if !errors.Is(err, kube.ErrNotServed) {
					t.Fatalf("err = %v, want ErrNotServed", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if requests.KeepsConditions() != tt.conditions {
				t.Errorf("KeepsConditions = %v", requests.KeepsConditions())
			}
			stored, err := requests.WriteStatus(t.Context(), request(), v1beta1.ContainerRecreateRequestStatus{Phase: "Recreating"})
			if err != nil || stored.ResourceVersion != "8" || stored.Status.Phase != "Recreating" || stored.Spec.PodName != "web" {
				t.Errorf("stored %+v, %v", stored, err)
			}
		})
	}
}

func request() *v1beta1.ContainerRecreateRequest {
	return &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "again", ResourceVersion: "7"},
		Status:     v1beta1.ContainerRecreateRequestStatus{Phase: "Pending", Message: "waiting"},
	}
}

// A write says what it was based on, clears what is gone, and repeats nothing that stays.
func TestWriteStatusIsADifferenceBoundToAVersion(t *testing.T) {
	t.Parallel()
	client, s := newClient(t, map[string]any{
		"GET /apis/apps.kruise.io/v1beta1":                 served("v1beta1"),
		"PATCH /apis/apps.kruise.io/v1beta1" + requestPath: http.StatusConflict,
	})
	requests, err := client.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := request()
	old.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: "Pending"}}
	changed := *old.Status.DeepCopy()
	changed.Phase, changed.Message = "Recreating", ""
	if _, err := requests.WriteStatus(t.Context(), old, changed); !apierrors.IsConflict(err) {
		t.Errorf("err = %v, want a conflict", err)
	}
	if want := `{"metadata":{"resourceVersion":"7"},"status":{"message":null,"phase":"Recreating"}}`; !strings.Contains(s.all(), want) {
		t.Errorf("sent %s\nwant %s", s.all(), want)
	}
}

func TestAnnotationOfARequestIsBoundToAVersion(t *testing.T) {
	t.Parallel()
	client, s := newClient(t, map[string]any{
		"GET /apis/apps.kruise.io/v1beta1": served("v1beta1"),
		"PATCH /apis/apps.kruise.io/v1beta1/namespaces/shop/containerrecreaterequests/again": map[string]any{
			"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
			"metadata": map[string]any{"name": "again", "resourceVersion": "8", "annotations": map[string]any{v1beta1.AnnotationInstances: "x", "other": "y"}},
		},
	})
	requests, err := client.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := requests.Annotate(t.Context(), request(), v1beta1.AnnotationInstances, "x")
	if err != nil || stored.ResourceVersion != "8" || stored.Annotations[v1beta1.AnnotationInstances] != "x" {
		t.Errorf("stored %+v, %v", stored, err)
	}
	if want := `{"metadata":{"annotations":{"refit.dev/instances":"x"},"resourceVersion":"7"}}`; !strings.Contains(s.all(), want) {
		t.Errorf("sent %s\nwant %s", s.all(), want)
	}
}

func TestAnnotateTouchesTheStatusOfThisPodOnly(t *testing.T) {
	t.Parallel()
	client, s := newClient(t, map[string]any{"PATCH /api/v1/namespaces/shop/pods/web/status": corev1.Pod{}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	if err := client.Annotate(t.Context(), pod, "refit.dev/nudge", "x"); err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"annotations":{"refit.dev/nudge":"x"},"uid":"u1"}}`; !strings.Contains(s.all(), want) {
		t.Errorf("sent %s, want %s", s.all(), want)
	}
}

func TestUserName(t *testing.T) {
	t.Parallel()
	const reviews = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
	client, _ := newClient(t, map[string]any{reviews: map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": "system:refit"}}}})
	if name, err := client.UserName(t.Context()); err != nil || name != "system:refit" {
		t.Errorf("UserName = %q, %v", name, err)
	}
	client, _ = newClient(t, nil)
	if name, err := client.UserName(t.Context()); err == nil {
		t.Errorf("UserName = %q without an answer", name)
	}
}

func TestMayGet(t *testing.T) {
	t.Parallel()
	const tokens, access = "POST /apis/authentication.k8s.io/v1/tokenreviews", "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
	known := map[string]any{"status": map[string]any{"authenticated": true, "user": map[string]any{"username": "prometheus"}}}
	unknown := map[string]any{"status": map[string]any{"authenticated": false}}
	allowed := map[string]any{"status": map[string]any{"allowed": true}}
	denied := map[string]any{"status": map[string]any{"allowed": false}}
	tests := map[string]struct {
		answers map[string]any
		want    bool
		fails   bool
	}{
		"allowed":              {answers: map[string]any{tokens: known, access: allowed}, want: true},
		"denied":               {answers: map[string]any{tokens: known, access: denied}},
		"unknown token":        {answers: map[string]any{tokens: unknown, access: allowed}},
		"nobody can be asked":  {answers: map[string]any{}, fails: true},
		"second answer is bad": {answers: map[string]any{tokens: known}, fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, s := newClient(t, tt.answers)
			got, err := client.MayGet(t.Context(), "secret", "/metrics")
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("MayGet = %v, %v", got, err)
			}
			for _, asked := range []string{`"user":"prometheus"`, `"path":"/metrics"`} {
				if tt.want && !strings.Contains(s.all(), asked) {
					t.Errorf("asked %s, want %s", s.all(), asked)
				}
			}
		})
	}
}

// A burst of Events is sent at once, what comes beyond it waits.
func TestEventsGiveWay(t *testing.T) {
	t.Parallel()
	const burst, beyond = 10, 2
	client, s := newClient(t, map[string]any{"POST /api/v1/namespaces/shop/events": corev1.Event{}})
	events := client.Events("refit-daemon", "node-1", slog.New(slog.DiscardHandler))
	for i := range burst + beyond {
		about := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
		events.Event(about, corev1.EventTypeNormal, "Killing", "stopping")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	began := time.Now()
	go func() { defer close(done); events.Run(ctx) }()
	for strings.Count(s.all(), "POST /api/v1/namespaces/shop/events") < burst+beyond {
		runtime.Gosched()
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("%d events beyond the burst were sent within %s", beyond, took)
	}
	cancel()
	<-done
}

func TestPodsAreThoseOfTheNodeAndTrimmed(t *testing.T) {
	t.Parallel()
	fat := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u1", Annotations: map[string]string{"big": strings.Repeat("x", 1000), corev1.MirrorPodAnnotationKey: "m"},
	}}
	fat.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx", Lifecycle: &corev1.Lifecycle{
		PreStop:   &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}},
		PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"warm"}}},
	}}}
	fat.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://1", Ready: true}}
	fat.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue}}
	fat.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	bookmark := corev1.Pod{TypeMeta: fat.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	client, s := newClient(t, map[string]any{"GET /api/v1/pods": stream{{"ADDED", fat}, {"BOOKMARK", bookmark}}})
	pods, err := client.Pods("node-1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); pods.RunWithContext(ctx) }()
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		t.Fatal("not synced")
	}
	cancel()
	<-done
	got := pods.GetStore().List()[0].(*corev1.Pod)
	if len(got.Annotations) != 1 || got.Spec.Containers[0].Image != "" || !got.Status.ContainerStatuses[0].Ready || got.UID != "u1" {
		t.Errorf("kept %+v", got)
	}
	if c := got.Status.Conditions; len(c) != 1 || c[0].Type != v1beta1.ConditionSidecarTerminated {
		t.Errorf("conditions %+v, want the one that decides about requests", c)
	}
	if hooks := got.Spec.Containers[0].Lifecycle; hooks == nil || hooks.PreStop.Exec.Command[0] != "drain" || hooks.PostStart != nil {
		t.Errorf("hooks %+v, want preStop alone, which the daemon runs", hooks)
	}
	if !strings.Contains(s.all(), "fieldSelector=spec.nodeName%3Dnode-1") {
		t.Errorf("asked %s", s.all())
	}
}
