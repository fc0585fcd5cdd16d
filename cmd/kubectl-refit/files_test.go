package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/console"
)

// Another program that listens on the port must not get the token.
func TestASidecarIsKnownByItsNameOrProgram(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		container corev1.Container
		want      bool
	}{
		"by name":       {corev1.Container{Name: "refit-sidecar", Image: "mirror/x"}, true},
		"by image":      {corev1.Container{Name: "files", Image: "registry.example.com/refit/refit-sidecar:v1"}, true},
		"by program":    {corev1.Container{Name: "files", Image: "nginx", Command: []string{"/refit/refit-sidecar", "--config=x"}}, true},
		"another":       {corev1.Container{Name: "web", Image: "nginx:1.29", Command: []string{"nginx"}}, false},
		"only argument": {corev1.Container{Name: "web", Image: "nginx", Args: []string{"refit-sidecar"}}, false},
	} {
		if got := isSidecar(tc.container); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// All pods are looked at before the first one is changed.
func TestFilesOfSelectedPods(t *testing.T) {
	t.Parallel()
	with := corev1.PodSpec{Containers: []corev1.Container{{Name: "refit-sidecar"}}}
	pods := map[string][]corev1.Pod{
		"app=web": {
			{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: with}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}},
		},
		"app=done": {{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: with, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/default/pods" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: pods[r.URL.Query().Get("labelSelector")]})
	}))
	defer server.Close()
	for selector, want := range map[string]struct {
		code  int
		words string
	}{
		"app=web": {console.ExitRefused, "pod b has no refit-sidecar"}, "app=done": {console.ExitFailed, "error: no running pod in namespace default matches --selector=app=done"}, "app=none": {console.ExitFailed, "error: no running pod"},
	} {
		root := command("test")
		root.SetArgs([]string{"files", "update", "-l", selector, "--version=2", "--url=https://files.example.com/a", "--server=" + server.URL, "--kubeconfig=", "--namespace=default"})
		root.SetOut(io.Discard)
		if err := root.ExecuteContext(t.Context()); console.ExitCode(err) != want.code || !strings.Contains(console.Line(err), want.words) {
			t.Errorf("%s: exit code %d: %v", selector, console.ExitCode(err), err)
		}
	}
}
