package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/internal/kube"
)

// requestServer has requests, the stored one if there is any.
type requestServer struct {
	mutex  sync.Mutex
	stored *v1beta1.ContainerRecreateRequest
}

func (s *requestServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/apis/apps.kruise.io/v1beta1"):
		answer = metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "containerrecreaterequests"}}}
	case r.Method == http.MethodPost && s.stored != nil:
		w.WriteHeader(http.StatusConflict)
		answer = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Code: http.StatusConflict}
	case r.Method == http.MethodPost:
		s.stored = &v1beta1.ContainerRecreateRequest{}
		if text, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(text, s.stored) != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		answer = s.stored
	default:
		answer = s.stored
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func newRequests(t *testing.T) (inplacecli.Cluster, *requestServer) {
	t.Helper()
	s := &requestServer{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := kube.NewClient(&rest.Config{Host: server.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return inplacecli.Cluster{Client: client}, s
}

// The request names the instance: one that has been restarted meanwhile is not restarted again.
func TestRestartForAnEnvironmentIsOfOneInstance(t *testing.T) {
	t.Parallel()
	api, s := newRequests(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("w", 240), Namespace: "demo", UID: "u"}}
	names := map[string]bool{}
	for _, instance := range []inplace.Instance{{Container: "app", ContainerID: "c://1"}, {Container: "app", ContainerID: "c://2"}, {Container: "log", ContainerID: "c://1"}} {
		s.stored = nil
		if err := api.Restart(t.Context(), pod, instance); err != nil {
			t.Fatal(err)
		}
		made := s.stored
		if spec := made.Spec; spec.PodName != pod.Name || len(spec.Containers) != 1 || spec.Containers[0].Name != instance.Container || *spec.ActiveDeadlineSeconds != 300 || *spec.TTLSecondsAfterFinished != 300 {
			t.Errorf("%+v", spec)
		}
		if got := made.Annotations[v1beta1.AnnotationExpectedInstances]; got != `{"`+instance.Container+`":"`+instance.ContainerID+`"}` {
			t.Errorf("expects %s", got)
		}
		if names[made.Name] || len(made.Name) > 253 || !strings.HasPrefix(made.Name, strings.Repeat("w", 200)+"-") {
			t.Errorf("name %s", made.Name)
		}
		names[made.Name] = true
		if err := api.Restart(t.Context(), pod, instance); err != nil || s.stored != made {
			t.Errorf("again: %v", err)
		}
	}
}

// Nothing restarts the container a second time: the update cannot go on.
func TestRestartThatHasFailedIsReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status v1beta1.ContainerRecreateRequestStatus
		want   string
	}{
		"under way": {v1beta1.ContainerRecreateRequestStatus{Phase: v1beta1.ContainerRecreateRequestRecreating, Message: "waiting"}, ""},
		"succeeded": {v1beta1.ContainerRecreateRequestStatus{
			Phase: v1beta1.ContainerRecreateRequestCompleted, Conditions: []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Status: metav1.ConditionTrue}},
		}, ""},
		"failed": {v1beta1.ContainerRecreateRequestStatus{
			Phase:      v1beta1.ContainerRecreateRequestCompleted,
			Conditions: []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: "PodGone", Message: "no pod"}},
		}, ": PodGone: no pod"},
	} {
		api, s := newRequests(t)
		s.stored = &v1beta1.ContainerRecreateRequest{Status: tt.status}
		err := api.Restart(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "demo"}}, inplace.Instance{Container: "app", ContainerID: "c://1"})
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "the restart failed: ContainerRecreateRequest ") || !strings.HasSuffix(err.Error(), tt.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
