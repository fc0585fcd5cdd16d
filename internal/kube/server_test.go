package kube_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/internal/kube"
)

// server is an API server that answers by path and writes down what it is asked.
type server struct {
	t       *testing.T
	answers map[string]any // by "METHOD path"; an int is a status code
	mu      sync.Mutex
	asked   []string // "METHOD path?query body"
}

func (s *server) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.asked = append(s.asked, request.Method+" "+request.URL.String()+" "+string(body))
	s.mu.Unlock()
	answer, ok := s.answers[request.Method+" "+request.URL.Path]
	if !ok {
		answer = http.StatusNotFound
	}
	out.Header().Set("Content-Type", "application/json")
	if code, isCode := answer.(int); isCode {
		out.WriteHeader(code)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reasonOf(code)}
	}
	if events, isWatch := answer.(stream); isWatch {
		s.watch(out, request, events)
		return
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

// stream is the answer to a watch: type and object of each event.
type stream [][2]any

func (s *server) watch(out http.ResponseWriter, request *http.Request, events stream) {
	for _, event := range events {
		if err := json.NewEncoder(out).Encode(map[string]any{"type": event[0], "object": event[1]}); err != nil {
			s.t.Error(err)
		}
	}
	out.(http.Flusher).Flush()
	<-request.Context().Done()
}

func reasonOf(code int) metav1.StatusReason {
	if code == http.StatusConflict {
		return metav1.StatusReasonConflict
	}
	return metav1.StatusReasonNotFound
}

func (s *server) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, "\n")
}

func newClient(t *testing.T, answers map[string]any) (*kube.Client, *server) {
	t.Helper()
	s := &server{t: t, answers: answers}
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	// Its own transport: closed with the server, where the shared one would keep connections.
	client, err := kube.NewClient(&rest.Config{Host: listener.URL, Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

func served(version string) metav1.APIResourceList {
	return metav1.APIResourceList{GroupVersion: "apps.kruise.io/" + version, APIResources: []metav1.APIResource{{Name: "containerrecreaterequests"}}}
}
