package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crashes counts the restarts of the manager's and the daemons' containers.
func (s *fixture) crashes() int32 {
	s.t.Helper()
	var pods corev1.PodList
	s.check(s.List(s.t.Context(), &pods, client.InNamespace(systemNamespace)), "list pods of Refit")
	var crashes int32
	for i := range pods.Items {
		for _, status := range statuses(&pods.Items[i]) {
			crashes += status.RestartCount
		}
	}
	return crashes
}

// TestHostileRequests sends what nobody means well with. Nothing crashes, and the next request is carried out.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	elsewhere := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	elsewhere.start(elsewhere.podOf("theirs", shell("app", obedient)))
	crashes := s.crashes()
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("c-%d", i)
	}
	for name, tc := range map[string]struct {
		request *request
		words   []string
	}{
		"5,000 containers":                  {s.newRequest("r", "web/"+strings.Join(many, ",")), []string{"spec.containers", "5000", "at most 256"}},
		"256 containers that are not there": {s.newRequest("r", "web/"+strings.Join(many[:256], ",")), []string{"spec.containers[0].name", "not found in Pod web"}},
		"a megabyte of annotations":         {s.newRequest("r", "web/app", annotate("a", strings.Repeat("x", 1<<20))), []string{"metadata.annotations"}},
		"64 KiB of pod name":                {s.newRequest("r", strings.Repeat("a", 64<<10)+"/app"), []string{"spec.podName"}},
		"a pod of another namespace":        {s.newRequest("r", "theirs/app"), []string{"no found Pod named theirs in namespace " + s.namespace}},
		"labels of another node and pod":    {s.newRequest("r", "web/app", label("crr.apps.kruise.io/node-name", "x"), label("crr.apps.kruise.io/pod-uid", "y")), []string{"metadata.labels"}},
	} {
		err := s.Create(t.Context(), tc.request)
		if err == nil || !containsAll(err.Error(), tc.words) {
			t.Errorf("%s: answer %.500v, want a refusal with %q", name, err, tc.words)
		}
	}
	traversal := s.newRequest("r", "x/app")
	traversal.Spec.PodName = "../" + elsewhere.namespace + "/theirs"
	if err := s.Create(t.Context(), traversal); err == nil || !strings.Contains(err.Error(), "spec.podName") {
		t.Errorf("a path to another namespace: answer %v", err)
	}
	if code, body := s.post(`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"r"},"spec":{"podName":"web","containers":[{"name":"` + "\xff\xfe" + `"}]}}`); code < 400 || code >= 500 {
		t.Errorf("invalid UTF-8: HTTP status %d: %s", code, body)
	}
	var list corev1.PodList
	s.check(s.List(t.Context(), &list, client.InNamespace(s.namespace)), "list pods")
	if code, body := s.post("[" + strings.Repeat("[", 100_000)); code < 400 || code >= 500 {
		t.Errorf("deep nesting: HTTP status %d: %s", code, body)
	}
	s.untouched(before, "app")
	s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
	if got := s.crashes(); got != crashes {
		t.Errorf("%d crashes of manager or daemon", got-crashes)
	}
}

// TestManyContainersOfOnePod has a pod of many containers and restarts them all with one request.
func TestManyContainersOfOnePod(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	var containers []corev1.Container
	var names []string
	for i := range 12 {
		name := fmt.Sprintf("c-%d", i)
		names = append(names, name)
		containers = append(containers, shell(name, obedient))
	}
	before := s.start(s.podOf("web", containers...))
	s.ask("r", "web/"+strings.Join(names, ","))
	s.succeeded("r")
	for _, name := range names {
		s.restarted(before, name, 1)
	}
}

// post sends bytes that no client library would.
func (s *fixture) post(body string) (int, string) {
	s.t.Helper()
	api, err := rest.HTTPClientFor(s.config)
	s.check(err, "make client")
	url := s.config.Host + "/apis/apps.kruise.io/v1beta1/namespaces/" + s.namespace + "/containerrecreaterequests"
	call, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	s.check(err, "make request")
	call.Header.Set("Content-Type", "application/json")
	response, err := api.Do(call)
	s.check(err, "post")
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	s.check(err, "read answer")
	return response.StatusCode, string(answer)
}
