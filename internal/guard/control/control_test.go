package control_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

func newGuard(t *testing.T) (*guard.Guard, *events.FakeRecorder) {
	t.Helper()
	recorder := events.NewFakeRecorder(10)
	return guard.New(guard.Config{
		Faults: prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"where", "fault"}), Logger: slog.New(slog.DiscardHandler),
		Report: func(object guard.Object, message string) { guardcontrol.Report(recorder, object, message) },
	}), recorder
}

func TestAPanicOfAReconcilerIsAnEventOnTheObject(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
	g, recorder := newGuard(t)
	cached := fake.NewClientBuilder().WithObjects(pod).Build()
	r := guardcontrol.Reconciler(g, cached, &corev1.Pod{}, reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { panic("planted") }))
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); !guard.Is(err) {
			t.Errorf("got %v, which is not tried again", err)
		}
	}
	if event := <-recorder.Events; !strings.Contains(event, "NotHandled") || !strings.Contains(event, "planted") || len(recorder.Events) > 0 {
		t.Errorf("Event %q, and %d more", event, len(recorder.Events))
	}
	if gone := guardcontrol.Find(t.Context(), cached, &corev1.Pod{}, client.ObjectKey{Namespace: "shop", Name: "gone"}); gone.String() != "Pod shop/gone" || gone.UID != "" {
		t.Errorf("got %+v", gone)
	}
}

func TestAnObjectIsAllowedWithoutWhatCouldNotBeAdded(t *testing.T) {
	t.Parallel()
	g, _ := newGuard(t)
	for name, handle := range map[string]admission.HandlerFunc{
		"a panic": func(context.Context, admission.Request) admission.Response { panic("planted") },
		"an error": func(context.Context, admission.Request) admission.Response {
			return admission.Errored(500, errors.New("planted"))
		},
	} {
		response := guardcontrol.AllowingWebhook(g, handle).Handle(t.Context(), admission.Request{})
		if !response.Allowed || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "adds nothing") {
			t.Errorf("%s: %+v", name, response)
		}
	}
	patched := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("as it is") })
	if response := guardcontrol.AllowingWebhook(g, patched).Handle(t.Context(), admission.Request{}); !response.Allowed || len(response.Warnings) != 0 {
		t.Errorf("got %+v", response)
	}
}

func TestAPanicOfAWebhookIsARefusal(t *testing.T) {
	t.Parallel()
	g, _ := newGuard(t)
	w := guardcontrol.Webhook(g, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic("planted") }))
	if response := w.Handle(t.Context(), admission.Request{}); response.Allowed || response.Result.Code != http.StatusInternalServerError {
		t.Errorf("got %+v", response)
	}
	w = guardcontrol.Webhook(g, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
	if response := w.Handle(t.Context(), admission.Request{}); !response.Allowed {
		t.Errorf("got %+v", response)
	}
}
