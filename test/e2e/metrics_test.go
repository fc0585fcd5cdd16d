package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forward makes a port of a pod reachable from here and returns its address.
func (s *fixture) forward(pod *corev1.Pod, port string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), s.program, "port-forward", "--namespace", pod.Namespace, "pod/"+pod.Name, ":"+port)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	out, err := command.StdoutPipe()
	s.check(err, "forward port")
	s.check(command.Start(), "forward port")
	s.t.Cleanup(func() { _ = command.Wait() }) // ended by the test's context, which is over by now
	line, err := bufio.NewReader(out).ReadString('\n')
	s.check(err, "forward port")
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	if address == "" {
		s.t.Fatalf("kubectl port-forward says %q", line)
	}
	return address
}

func (s *fixture) get(ctx context.Context, url, token string) (int, string) {
	s.t.Helper()
	// The daemon signs its certificate itself.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	s.check(err, "make request")
	if token != "" {
		call.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(call)
	s.check(err, "get %s", url)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.check(err, "get %s", url)
	return response.StatusCode, string(body)
}

// metricsReader is a token with which metrics may be read.
func (s *fixture) metricsReader() string {
	s.t.Helper()
	ctx := s.t.Context()
	s.check(s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: s.namespace}}), "make account")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "refit-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "prometheus", Namespace: s.namespace}},
	}
	s.check(s.Create(ctx, binding), "bind role")
	s.t.Cleanup(func() {
		if err := s.Delete(context.WithoutCancel(ctx), binding); err != nil {
			s.t.Errorf("delete role binding: %v", err)
		}
	})
	return s.token(s.namespace, "prometheus", nil)
}

func TestMetricsNeedAToken(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.check(s.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: s.namespace}}), "make account")
	reader := s.metricsReader()
	pod := s.start(s.podOf("web", shell("app", obedient)))
	s.ask("r", "web/app")
	s.succeeded("r")
	metrics := "https://" + s.forward(s.daemonOn(pod.Spec.NodeName), "10223") + "/metrics"
	for name, tc := range map[string]struct {
		token string
		code  int
	}{
		"no token":             {code: http.StatusUnauthorized},
		"not a token":          {token: "abc", code: http.StatusForbidden},
		"of an unknown reader": {token: s.token(s.namespace, "stranger", nil), code: http.StatusForbidden},
	} {
		if code, body := s.get(t.Context(), metrics, tc.token); code != tc.code || strings.Contains(body, "refit_") {
			t.Errorf("%s: HTTP status %d, want %d: %s", name, code, tc.code, body)
		}
	}
	var body string
	s.await("metrics", func(ctx context.Context) (bool, error) { // the role reaches the API server's cache a moment later
		var code int
		code, body = s.get(ctx, metrics, reader)
		return code == http.StatusOK, nil
	})
	for _, metric := range []string{
		`refit_crr_completed_total{reason="Succeeded",result="succeeded"}`, "refit_crr_step_duration_seconds_count{step=\"stop\"}",
		"refit_cri_call_duration_seconds_count{method=\"StopContainer\"}", "refit_crr_acts_in_flight ", "refit_build_info{",
	} {
		if !strings.Contains(body, metric) {
			t.Errorf("metrics lack %s:\n%s", metric, body)
		}
	}
}

func TestHealthEndpointsOfTheDaemon(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	address := "http://" + s.forward(s.daemonOn(s.nodes[0]), "10221")
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/debug/pprof/": 404} {
		if code, body := s.get(t.Context(), address+path, ""); code != want {
			t.Errorf("%s: HTTP status %d, want %d: %s", path, code, want, body)
		}
	}
}
