package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// serverOf names the variable with the address of an API server, for which the test below runs the program.
const serverOf = "REFIT_TEST_SERVER"

// During an outage of the API server the reflectors of client-go wrote into the terminal. Warnings of the API server were lost.
func TestStandardErrorHasErrorsAndWarningsOnly(t *testing.T) {
	if server := os.Getenv(serverOf); server != "" {
		quiet()
		klog.ErrorS(nil, "noise of a library")
		os.Args = []string{"kubectl-refit", "why", "nope", "--server=" + server, "--kubeconfig=", "--namespace=default"}
		main()
	}
	t.Parallel()
	empty := emptyServer(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Warning", `299 - "this version ends soon"`)
		empty.Config.Handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	program.Env = append(os.Environ(), serverOf+"="+server.URL)
	var said bytes.Buffer
	program.Stderr = &said
	err := program.Run()
	if want := "Warning: this version ends soon\nError from server (NotFound): pods \"nope\" not found\n"; program.ProcessState.ExitCode() != 1 || said.String() != want {
		t.Errorf("%v:\n%s", err, said.String())
	}
}

// recording is an API server with a RestartRollout that has ended.
func recording(t *testing.T) *httptest.Server {
	t.Helper()
	empty := emptyServer(t)
	rollout := v1alpha1.RestartRollout{TypeMeta: metav1.TypeMeta{APIVersion: "refit.dev/v1alpha1", Kind: "RestartRollout"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-x", UID: "uid"}}
	rollout.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const path = "/apis/refit.dev/v1alpha1/namespaces/default/restartrollouts"
		switch {
		case r.URL.Query().Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
		case r.URL.Path == path+"/web-x":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(rollout)
		case r.URL.Path == path:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v1alpha1.RestartRolloutList{Items: []v1alpha1.RestartRollout{rollout}})
		default:
			empty.Config.Handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// It wrote a file of the name -.
func TestRecordOnStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	server := recording(t)
	root := command("test")
	var out bytes.Buffer
	root.SetArgs([]string{"dashboard", "--record=-", "restartrollout/web-x", "--server=" + server.URL, "--kubeconfig=", "--namespace=default"})
	root.SetOut(&out)
	err := root.ExecuteContext(t.Context())
	if text := strings.TrimSpace(out.String()); err != nil || !strings.HasPrefix(text, "<!") || !strings.HasSuffix(text, "</html>") || !strings.Contains(text, "restartrollout/web-x") {
		t.Errorf("%v:\n%s", err, text)
	}
	if files, err := filepath.Glob("*"); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}
