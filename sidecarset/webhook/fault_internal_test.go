package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/guard"
)

const failSet = "metadata: {name: log}\nspec: {selector: {matchLabels: {app: web}}, injectionStrategy: {failurePolicy: Fail}, containers: [{name: agent, image: agent:1}]}"

// The clock is read while a pod is injected: a panic there is a panic in the code for this pod.
func broken(t *testing.T, set string, clock func() time.Time) (*podHandler, *prometheus.CounterVec) {
	t.Helper()
	h, faults := handler(set), prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"where", "fault"})
	h.guard, h.now = guard.New(guard.Config{Faults: faults, Logger: slog.New(slog.DiscardHandler)}), clock
	return h, faults
}

func counted(t *testing.T, faults *prometheus.CounterVec, fault string) {
	t.Helper()
	if n := testutil.ToFloat64(faults.WithLabelValues("injection", fault)); n != 1 {
		t.Errorf("%v faults of kind %s are counted", n, fault)
	}
}

func TestAPodWhoseInjectionPanicsIsRefusedOnlyWhereItsSidecarsAreRequired(t *testing.T) {
	t.Parallel()
	panics := func() time.Time { panic("planted") }
	h, faults := broken(t, failSet, panics)
	if _, response, code := create(t, h, "shop", webPod); code != http.StatusOK || response.Allowed || !strings.Contains(response.Result.Message, "SidecarSet log has failurePolicy Fail") {
		t.Errorf("required: HTTP status %d, %+v", code, response)
	}
	counted(t, faults, "panic")
	h, _ = broken(t, logSet, panics)
	if pod, response, code := create(t, h, "shop", webPod); code != http.StatusOK || !response.Allowed || len(pod.Spec.Containers) != 1 || len(response.Warnings) != 1 {
		t.Errorf("not required: HTTP status %d, %+v", code, response)
	}
	h.now = time.Now
	if pod, _, _ := create(t, h, "shop", webPod); len(pod.Spec.Containers) != 2 {
		t.Error("the next pod is not injected")
	}
}

func TestAPodWhoseInjectionDoesNotEndIsAnsweredBeforeTheAPIServerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		h, faults := broken(t, failSet, func() time.Time { <-released; return time.Time{} })
		begun := time.Now()
		_, response, code := create(t, within(h, "2s"), "shop", webPod)
		if code != http.StatusOK || response.Allowed || response.UID != "review" {
			t.Errorf("HTTP status %d, %+v", code, response)
		}
		if took := time.Since(begun); took >= 2*time.Second {
			t.Errorf("answered after %s", took)
		}
		counted(t, faults, "deadline")
		// Those that do not end are bounded: the third is not begun, and answered all the same.
		create(t, within(h, "2s"), "shop", webPod)
		if _, response, _ = create(t, within(h, "2s"), "shop", webPod); response.Allowed {
			t.Errorf("got %+v", response)
		}
		close(released)
		synctest.Wait()
		if _, response, _ = create(t, within(h, "2s"), "shop", webPod); !response.Allowed {
			t.Errorf("afterwards: %+v", response)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := h.Start(ctx); err != nil {
			t.Error(err)
		}
	})
}

// within sends requests as an API server that waits for the given time.
func within(h http.Handler, timeout string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = "timeout=" + timeout
		h.ServeHTTP(w, r)
	})
}

func TestTheDeadlineIsBelowThatOfTheAPIServer(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]time.Duration{"10s": 8 * time.Second, "1s": 800 * time.Millisecond, "": 4 * time.Second, "x": 4 * time.Second, "-1s": 4 * time.Second, "1h": 4 * time.Second} {
		if got := answerWithin(sent); got != want {
			t.Errorf("%q: %s, want %s", sent, got, want)
		}
	}
}

// A namespace whose labels cannot be read may be one that is selected.
func TestAFaultIsARefusalWhereTheNamespaceIsNotKnown(t *testing.T) {
	t.Parallel()
	byNamespace := strings.Replace(failSet, "containers", "namespaceSelector: {matchLabels: {team: a}}, containers", 1)
	for name, tc := range map[string]struct {
		cached  reader
		refused bool
	}{
		"selected": {reader{labels: map[string]map[string]string{"shop": {"team": "a"}}}, true}, "not selected": {reader{labels: map[string]map[string]string{"shop": {"team": "b"}}}, false},
		"not known": {reader{}, true},
	} {
		h, _ := broken(t, byNamespace, time.Now)
		h.namespaces = &namespaces{cached: tc.cached, live: panicking{}}
		request := &admissionv1.AdmissionRequest{Namespace: "shop"}
		request.Object.Raw = []byte(webPod)
		if response := h.answerFailure(t.Context(), request, guard.ErrDeadline); response.Allowed == tc.refused {
			t.Errorf("%s: %+v", name, response)
		}
	}
}

type panicking struct{ client.Reader }

func TestASidecarSetThatCannotBeCompiledKeepsNoOtherFromPods(t *testing.T) {
	t.Parallel()
	h, faults := broken(t, logSet, time.Now)
	h.index.guard = h.guard
	bad := sidecarSet("metadata: {name: bad}\nspec: {selector: {matchLabels: {app: web}}, injectionStrategy: {revision: {}}, containers: [{name: x, image: x:1}]}")
	h.index.revisions[client.ObjectKey{Name: "x"}] = nil // as no code expects
	h.index.set(bad)
	counted(t, faults, "panic")
	for _, want := range []string{"agent:1", "agent:2"} {
		pod, _, _ := create(t, h, "shop", webPod)
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == want }) {
			t.Errorf("injected %v, want %s", pod.Spec.Containers, want)
		}
		delete(h.index.revisions, client.ObjectKey{Name: "x"})
		h.index.set(sidecarSet(strings.Replace(logSet, "agent:1", "agent:2", 1)))
	}
}
