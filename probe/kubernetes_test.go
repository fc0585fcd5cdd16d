package probe_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/probe"
)

// Without an address the dialer would reach this machine.
func TestFromKubernetesNeedsAnAddress(t *testing.T) {
	t.Parallel()
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	if spec, err := probe.FromKubernetes(p, probe.Place{}); err == nil {
		t.Errorf("%+v", spec.Prober)
	}
}

// A command needs somebody who runs it in the container.
func TestFromKubernetesNeedsAnExecer(t *testing.T) {
	t.Parallel()
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}}
	if spec, err := probe.FromKubernetes(p, probe.Place{Host: "10.0.0.7"}); err == nil {
		t.Errorf("%+v", spec.Prober)
	}
}

func TestFromKubernetesAsks(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Host + " " + r.URL.RequestURI() + " " + strings.Join(r.Header.Values("X-A"), "+")
	}))
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	place := probe.Place{Host: host, Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(number)}}}
	get := &corev1.HTTPGetAction{
		Path: "//healthz?a=b", Port: intstr.FromString("web"),
		HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "app"}, {Name: "x-a", Value: "1"}, {Name: "X-A", Value: "2"}},
	}
	spec, err := probe.FromKubernetes(&corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}}, place)
	if err != nil {
		t.Fatal(err)
	}
	check(t, spec.Prober.Probe(t.Context()), probe.Succeeded, "")
	if got := <-seen; got != "app /healthz?a=b 1+2" {
		t.Errorf("server saw %q", got)
	}
}

// A pod's own certificate has no name to verify, and kubelet does not verify it either.
func TestFromKubernetesAsksOverTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	address, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(server.Listener.Addr())
	}
	get := &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Port: intstr.FromInt32(int32(address.Port))}
	spec, err := probe.FromKubernetes(&corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}}, probe.Place{Host: address.IP.String()})
	if err != nil {
		t.Fatal(err)
	}
	check(t, spec.Prober.Probe(t.Context()), probe.Succeeded, "")
}

func TestFromKubernetes(t *testing.T) {
	t.Parallel()
	e := &execer{}
	place := probe.Place{Host: "10.0.0.7", Ports: []corev1.ContainerPort{{Name: "game", ContainerPort: 7000}}, Execer: e}
	timed := corev1.Probe{InitialDelaySeconds: 1, PeriodSeconds: 2, TimeoutSeconds: 3, SuccessThreshold: 4, FailureThreshold: 5}
	tests := map[string]struct {
		handler corev1.ProbeHandler
		want    probe.Prober // nil: refused
	}{
		"exec":             {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}, probe.Exec{Execer: e, Command: []string{"x"}}},
		"tcp by name":      {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("game")}}, probe.TCP{Address: "10.0.0.7:7000"}},
		"tcp by number":    {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}, probe.TCP{Address: "10.0.0.7:80"}},
		"tcp by text":      {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("81")}}, probe.TCP{Address: "10.0.0.7:81"}},
		"own host":         {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.7", Port: intstr.FromInt32(80)}}, probe.TCP{Address: "10.0.0.7:80"}},
		"grpc":             {corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 90, Service: new("s")}}, &probe.GRPC{Address: "10.0.0.7:90", Service: "s"}},
		"foreign tcp host": {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)}}, nil},
		"foreign web host": {corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "metadata", Port: intstr.FromInt32(80)}}, nil},
		"unknown port":     {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("web")}}, nil},
		"the last port":    {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(65535)}}, probe.TCP{Address: "10.0.0.7:65535"}},
		"a port too large": {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("65536")}}, nil},
		"the first port":   {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}, probe.TCP{Address: "10.0.0.7:1"}},
		"port 0":           {corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}, nil},
		"no command":       {corev1.ProbeHandler{Exec: &corev1.ExecAction{}}, nil},
		"bad path":         {corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/%zz", Port: intstr.FromInt32(80)}}, nil},
		"nothing":          {corev1.ProbeHandler{}, nil},
		"two handlers": {corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"x"}}, TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)},
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := timed
			p.ProbeHandler = tt.handler
			got, err := probe.FromKubernetes(&p, place)
			if (err != nil) != (tt.want == nil) {
				t.Fatalf("err = %v", err)
			}
			if err != nil {
				return
			}
			want := probe.Spec{Prober: tt.want, Timing: probe.Timing{
				StartDelay: time.Second, Period: 2 * time.Second, Timeout: 3 * time.Second, SuccessThreshold: 4, FailureThreshold: 5,
			}}
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *execer) bool { return a == b }), cmpopts.IgnoreUnexported(probe.GRPC{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
