package ownpod_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve makes a client of an API server that is a handler.
func serve(t *testing.T, handler http.Handler) *ownpod.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	client, err := ownpod.NewClient(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// refuse answers as the API server does.
func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no %s","reason":%q,"code":%d}`, reason, reason, code)
}

var pod = identity.Pod{Namespace: "games", Name: "gs-0", UID: "u-1"}

func TestErrorsAreNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		code   int
		reason string
		want   error
	}{
		"gone":         {404, "NotFound", ownpod.ErrNotFound},
		"forbidden":    {403, "Forbidden", ownpod.ErrForbidden},
		"unauthorized": {401, "Unauthorized", ownpod.ErrForbidden},
		"conflict":     {409, "Conflict", ownpod.ErrConflict},
		"exists":       {409, "AlreadyExists", ownpod.ErrConflict},
		"other":        {422, "Invalid", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, tt.code, tt.reason) }))
			_, err := c.Get(t.Context(), ownpod.PodReference(pod))
			if err == nil || !strings.Contains(err.Error(), "get pods games/gs-0: ") {
				t.Fatalf("error %v does not say what was done", err)
			}
			if !strings.Contains(err.Error(), "no "+tt.reason) {
				t.Errorf("error %v does not have the words of the API server", err)
			}
			for _, kind := range []error{ownpod.ErrNotFound, ownpod.ErrForbidden, ownpod.ErrConflict} {
				if errors.Is(err, kind) != errors.Is(tt.want, kind) {
					t.Errorf("%v is %v: %t", err, kind, errors.Is(err, kind))
				}
			}
		})
	}
}

func TestPathsAndBodies(t *testing.T) {
	t.Parallel()
	var got []string
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, strings.TrimSpace(strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body)}, " ")))
		fmt.Fprint(w, `{"metadata":{"name":"gs-0"},"status":{"allowed":true}}`)
	}))
	gameserver := ownpod.Reference{Group: "game.kruise.io", Version: "v1alpha1", Resource: "gameservers", Namespace: "games", Name: "gs-0", Subresource: "status"}
	_, err1 := c.Patch(t.Context(), gameserver, "application/merge-patch+json", []byte(`{}`))
	_, err2 := c.Create(t.Context(), ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: "games"}, []byte(`{}`))
	read, err3 := c.Pod(t.Context(), pod)
	may, err4 := c.May(t.Context(), "patch", ownpod.Reference{Version: "v1", Resource: "pods", Subresource: "status", Namespace: "games", Name: "gs-0"})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if read.Name != "gs-0" || !may {
		t.Errorf("pod %q, may %t", read.Name, may)
	}
	want := []string{
		"PATCH /apis/game.kruise.io/v1alpha1/namespaces/games/gameservers/gs-0/status application/merge-patch+json {}",
		"POST /api/v1/namespaces/games/configmaps application/json {}",
		"GET /api/v1/namespaces/games/pods/gs-0",
		`POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews application/json {"apiVersion":"authorization.k8s.io/v1",` +
			`"kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"games","verb":"patch","group":"","version":"v1",` +
			`"resource":"pods","subresource":"status","name":"gs-0"}},"status":{"allowed":false,"reason":""}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsOfOlderClusters(t *testing.T) {
	t.Parallel()
	var patched string
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/v1beta1"):
			refuse(w, 404, "NotFound")
		case strings.HasSuffix(r.URL.Path, "/v1alpha1"):
			fmt.Fprint(w, `{"resources":[{"name":"other"},{"name":"containerrecreaterequests"}]}`)
		default:
			b, _ := io.ReadAll(r.Body)
			patched = r.URL.Path + " " + string(b)
			fmt.Fprint(w, `{"metadata":{"name":"r","resourceVersion":"2"},"status":{"phase":"Recreating"}}`)
		}
	}))
	requests, err := c.Requests(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if requests.KeepsConditions() {
		t.Error("v1alpha1 keeps conditions")
	}
	request := &v1beta1.ContainerRecreateRequest{}
	request.Name, request.ResourceVersion = "r", "1"
	request.Status.Phase, request.Status.Message = "Pending", "old"
	stored, err := requests.WriteStatus(t.Context(), request, v1beta1.ContainerRecreateRequestStatus{Phase: "Recreating"})
	if err != nil {
		t.Fatal(err)
	}
	if stored.ResourceVersion != "2" || stored.Status.Phase != "Recreating" {
		t.Errorf("stored %+v", stored)
	}
	want := `/apis/apps.kruise.io/v1alpha1/namespaces/games/containerrecreaterequests/r/status ` +
		`{"metadata":{"resourceVersion":"1"},"status":{"message":null,"phase":"Recreating"}}`
	if patched != want {
		t.Errorf("patched\n%s, want\n%s", patched, want)
	}

	none := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, "NotFound") }))
	if _, err := none.Requests(t.Context(), pod); !errors.Is(err, ownpod.ErrNotFound) {
		t.Errorf("without CRD: %v", err)
	}
}

func TestEventsAreSentAndFloodsCutOff(t *testing.T) {
	t.Parallel()
	var names []string
	done := make(chan struct{}, 100)
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e corev1.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		names = append(names, e.Reason+" "+e.InvolvedObject.Name+" "+e.Source.Component)
		fmt.Fprint(w, `{}`)
		done <- struct{}{}
	}))
	events := ownpod.NewEvents(c, "refit-sidecar", slog.New(slog.DiscardHandler))
	about := corev1.ObjectReference{Kind: "Pod", Namespace: "games", Name: "gs-0"}
	for range 100 {
		events.Event(about, corev1.EventTypeNormal, "HotUpdateSucceeded", "v2")
	}
	ctx, cancel := contextWithCancel(t)
	finished := make(chan struct{})
	go func() { events.Run(ctx); close(finished) }()
	<-done
	cancel()
	<-finished // what waited is sent at the end
	if len(names) != 25 || names[0] != "HotUpdateSucceeded gs-0 refit-sidecar" {
		t.Errorf("%d events, first %q", len(names), names[0])
	}
}
