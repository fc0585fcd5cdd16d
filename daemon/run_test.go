package daemon

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/fakecri"
	"github.com/refit-project/refit/test/kit/logbuffer"
	"github.com/refit-project/refit/test/kit/loopback"
	"github.com/refit-project/refit/test/kit/poll"
)

// running starts the whole daemon, as main does, and stops it at the end of the test.
func running(t *testing.T, server *apiServer, socket string) (Config, *logbuffer.Buffer) {
	t.Helper()
	log := &logbuffer.Buffer{}
	config := Config{
		Node: "node-1", Kubeconfig: server.kubeconfig(t), Socket: socket, Version: "test", MaxConcurrent: 8, MaxPulls: 1, ExecProbeCPUPercent: 100,
		Addr: loopback.Address(t), MetricsAddr: loopback.Address(t), PprofAddr: loopback.Address(t), Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	return config, log
}

// fetch is the status and body of a GET; 0 while nobody listens.
func fetch(t *testing.T, address, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// podOn runs a pod with a container app on the runtime, and returns what the API server has of it.
func podOn(runtime *fakecri.Runtime, name string) *corev1.Pod {
	sandbox := runtime.RunPod(identity.Pod{Namespace: "shop", Name: name, UID: "uid-" + name}, "127.0.0.1")
	id := runtime.RunContainer(sandbox, fakecri.Container{Name: "app"})
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: "node-1", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app"}}},
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: fakecri.Name + "://" + id, Ready: true}}
	return pod
}

func requestFor(pod *corev1.Pod, node string) *v1beta1.ContainerRecreateRequest {
	return &v1beta1.ContainerRecreateRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: "ContainerRecreateRequest"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "again-" + node, UID: types.UID("uid-again-" + node), CreationTimestamp: metav1.Now(),
			Labels: map[string]string{v1beta1.LabelPodUID: string(pod.UID), v1beta1.LabelNodeName: node, v1beta1.LabelActive: "true"},
		},
		Spec: v1beta1.ContainerRecreateRequestSpec{PodName: pod.Name, Containers: []v1beta1.ContainerRecreateRequestContainer{{
			Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: pod.Status.ContainerStatuses[0].ContainerID},
		}}},
	}
}

// The whole daemon against an API server and a runtime: it becomes ready, executes the request of its node and not that
// of another, and shows both in metrics and Events.
func TestDaemonExecutesTheRequestsOfItsNode(t *testing.T) {
	t.Parallel()
	server, runtime := newAPIServer(t), fakecri.Start(t)
	pod := podOn(runtime, "web")
	server.put(t, podCollection, pod)
	runtime.ActAsKubelet(fakecri.Kubelet{
		Delay: func(int) time.Duration { return 20 * time.Millisecond },
		OnStart: func(instance fakecri.Instance) {
			next := pod.DeepCopy()
			next.Status.ContainerStatuses[0].ContainerID = fakecri.Name + "://" + instance.ID
			server.put(t, podCollection, next)
		},
	})
	config, _ := running(t, server, strings.TrimPrefix(runtime.Endpoint(), "unix://"))
	poll.Until(t, "the daemon is ready", func() bool { code, _ := fetch(t, config.Addr, "/readyz"); return code == http.StatusOK })

	server.put(t, requestCollection, requestFor(pod, "node-2"))
	server.put(t, requestCollection, requestFor(pod, "node-1"))
	var mine, other v1beta1.ContainerRecreateRequest
	poll.Until(t, "the request ends", func() bool {
		server.get(t, requestCollection, "shop/again-node-1", &mine)
		return crr.Completed(&mine)
	})
	if result, reason := crr.Result(mine.Status); result != "succeeded" {
		t.Errorf("ended as %s for %s: %s", result, reason, mine.Status.Message)
	}
	if server.get(t, requestCollection, "shop/again-node-2", &other); other.Status.Phase != "" {
		t.Errorf("touched the request of another node: %+v", other.Status)
	}
	if stops := runtime.Calls("StopContainer"); len(stops) != 1 {
		t.Errorf("%d stops, want 1", len(stops))
	}
	poll.Until(t, "Events are sent", func() bool { return len(server.bodies("/events")) == 2 })
	_, metrics := fetch(t, config.MetricsAddr, "/metrics")
	for _, want := range []string{
		`refit_crr_completed_total{reason="Succeeded",result="succeeded"} 1`, `refit_cri_call_duration_seconds_count{method="StopContainer"} 1`,
		`refit_build_info{program="refit-daemon",version="test"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if code, _ := fetch(t, config.PprofAddr, "/debug/pprof/"); code != http.StatusOK {
		t.Errorf("profiles: status %d", code)
	}
}

// While the daemon waits it is healthy but not ready, and logs the reason. It continues when the wait is over.
func TestDaemonWaitsForRuntimeAndCRDs(t *testing.T) {
	t.Parallel()
	server, runtime := newAPIServer(t), fakecri.Start(t)
	server.serve("apps.kruise.io/v1beta1")
	socket := filepath.Join(t.TempDir(), "later.sock")
	config, log := running(t, server, socket)
	poll.Until(t, "it says that there is no runtime", func() bool { return strings.Contains(log.String(), "cannot find the container runtime yet") })
	if code, _ := fetch(t, config.Addr, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d without a runtime", code)
	}
	if err := os.Symlink(strings.TrimPrefix(runtime.Endpoint(), "unix://"), socket); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "it says that there is no CRD", func() bool {
		return strings.Contains(log.String(), "cannot find ContainerRecreateRequests in the API yet")
	})
	if code, why := fetch(t, config.Addr, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(why, "caches") {
		t.Errorf("/readyz: %d %s without CRDs", code, why)
	}
	server.serve("apps.kruise.io/v1beta1", "containerrecreaterequests")
	poll.Until(t, "the daemon is ready", func() bool { code, _ := fetch(t, config.Addr, "/readyz"); return code == http.StatusOK })
}

func TestDaemonDoesNotStartWithAWrongConfiguration(t *testing.T) {
	t.Parallel()
	server := newAPIServer(t)
	good := Config{
		Node: "node-1", Kubeconfig: server.kubeconfig(t), Addr: "127.0.0.1:0", MetricsAddr: "127.0.0.1:0", MaxConcurrent: 1, MaxPulls: 1, ExecProbeCPUPercent: 100,
		Logger: slog.New(slog.DiscardHandler),
	}
	taken := strings.TrimPrefix(server.URL, "http://")
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no node name":            {func(c *Config) { c.Node = "" }, "NODE_NAME"},
		"no kubeconfig":           {func(c *Config) { c.Kubeconfig = "/does/not/exist" }, "exist"},
		"address in use":          {func(c *Config) { c.Addr = taken }, "in use"},
		"address of metrics, too": {func(c *Config) { c.MetricsAddr = taken }, "in use"},
		"address of profiles":     {func(c *Config) { c.PprofAddr = taken }, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good
			tt.change(&config)
			if err := Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Metrics on an address that others reach are served over TLS, to tokens that may read them.
func TestMetricsForOthersAreServedOverTLS(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(loopback.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	served := endpoints{
		config:    Config{Node: "node-1", Addr: "127.0.0.1:0", MetricsAddr: ":" + port},
		readiness: &readiness{}, metrics: newMetrics("test").registry, tokens: tokens{"good": nil},
	}
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	if err := served.serve(ctx, group); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	for token, want := range map[string]int{"good": http.StatusOK, "bad": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("token %s: status %d, want %d", token, response.StatusCode, want)
		}
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, ":1": false, "0.0.0.0:1": false, "10.0.0.1:1": false, "nonsense": false,
	} {
		if got := Loopback(address); got != want {
			t.Errorf("Loopback(%s) = %v, want %v", address, got, want)
		}
	}
}
