package hook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/internal/hook"
)

// serve starts what listens in the pod and returns its port.
func serve(t *testing.T, handler http.HandlerFunc) int32 {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return serverPort(t, server.URL)
}

func serverPort(t *testing.T, address string) int32 {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(parsed.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(port)
}

func get(action corev1.HTTPGetAction) corev1.LifecycleHandler {
	return corev1.LifecycleHandler{HTTPGet: &action}
}

func TestHTTPGet(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request went to another host") })
	asked := make(chan *http.Request, 1)
	status := http.StatusOK
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r:
		default:
		}
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.1:"+strconv.Itoa(int(elsewhere)), http.StatusFound)
			return
		}
		if r.URL.Path == "/broken" {
			status = http.StatusInternalServerError
		}
		if r.URL.Path == "/refused" {
			status = http.StatusBadRequest
		}
		w.WriteHeader(status)
		status = http.StatusOK
	})
	number := intstr.FromInt32(port)
	//nolint:paralleltest // they share the server
	for _, tt := range []struct {
		name   string
		action corev1.HTTPGetAction
		want   string // in the error; empty: none
		path   string // asked for
		host   string
		header string
	}{
		{name: "by port number", action: corev1.HTTPGetAction{Port: number, Path: "/drain?now=1"}, path: "/drain?now=1"},
		{name: "by port name", action: corev1.HTTPGetAction{Port: intstr.FromString("web"), Path: "drain"}, path: "/drain"},
		{name: "escaped path", action: corev1.HTTPGetAction{Port: number, Path: "/a%2Fb"}, path: "/a%2Fb"},
		{name: "escaped path without a slash", action: corev1.HTTPGetAction{Port: number, Path: "a%2Fb"}, path: "/a%2Fb"},
		{name: "a path that is no URL", action: corev1.HTTPGetAction{Port: number, Path: "/%zz"}, path: "/%25zz"},
		{name: "no path", action: corev1.HTTPGetAction{Port: number}, path: "/"},
		{name: "a host in the path", action: corev1.HTTPGetAction{Port: number, Path: "//127.0.0.1:" + strconv.Itoa(int(elsewhere)) + "/x"}, path: "//127.0.0.1:" + strconv.Itoa(int(elsewhere)) + "/x"},
		{name: "headers", action: corev1.HTTPGetAction{Port: number, Path: "/", HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Hook", Value: "yes"}}}, path: "/", header: "yes"},
		{name: "header Host", action: corev1.HTTPGetAction{Port: number, Path: "/", HTTPHeaders: []corev1.HTTPHeader{{Name: "host", Value: "shop.example"}}}, path: "/", host: "shop.example"},
		{name: "the pod's IP as host", action: corev1.HTTPGetAction{Port: number, Host: "127.0.0.1"}, path: "/"},
		{name: "redirect is not followed", action: corev1.HTTPGetAction{Port: number, Path: "/away"}, path: "/away"},
		{name: "failing", action: corev1.HTTPGetAction{Port: number, Path: "/broken"}, path: "/broken", want: "HTTP status 500"},
		{name: "refused with the first status that is an error", action: corev1.HTTPGetAction{Port: number, Path: "/refused"}, path: "/refused", want: "HTTP status 400"},
		{name: "another host", action: corev1.HTTPGetAction{Port: intstr.FromInt32(elsewhere), Host: "localhost"}, want: "not the pod's IP"},
		{name: "port of another container", action: corev1.HTTPGetAction{Port: intstr.FromString("admin")}, want: "no port of that name"},
		{name: "port without a name", action: corev1.HTTPGetAction{Port: intstr.FromString("")}, want: "no port of that name"},
		{name: "port 0", action: corev1.HTTPGetAction{Port: intstr.FromInt32(0)}, want: "want 1 to 65535"},
		{name: "the first port", action: corev1.HTTPGetAction{Port: intstr.FromInt32(1)}, want: "refused"},
		{name: "the last port", action: corev1.HTTPGetAction{Port: intstr.FromInt32(65535)}, want: "refused"},
		{name: "port too large", action: corev1.HTTPGetAction{Port: intstr.FromInt32(65536)}, want: "want 1 to 65535"},
		{name: "too large a number in a string", action: corev1.HTTPGetAction{Port: intstr.FromString("65536")}, want: "want 1 to 65535"},
		{name: "number in a string", action: corev1.HTTPGetAction{Port: intstr.FromString(strconv.Itoa(int(port)))}, path: "/"},
	} {
		c := call(get(tt.action))
		c.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: elsewhere}, {Name: "web", ContainerPort: port}}
		c.Pod.Spec.InitContainers[0].Ports = []corev1.ContainerPort{{Name: "admin", ContainerPort: elsewhere}}
		err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), c)
		t.Run(tt.name, func(t *testing.T) { wantError(t, err, tt.want, nil) })
		select {
		case r := <-asked:
			if r.RequestURI != tt.path || tt.host != "" && r.Host != tt.host || r.Header.Get("X-Hook") != tt.header {
				t.Errorf("%s: asked for %s of %s with %v", tt.name, r.RequestURI, r.Host, r.Header)
			}
		default:
			if tt.path != "" {
				t.Errorf("%s: not asked", tt.name)
			}
		}
	}
}

// What the container has begun to say is not what it says.
func TestHTTPGetWaitsForTheWholeAnswer(t *testing.T) {
	t.Parallel()
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("do"))
	})
	err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), call(get(corev1.HTTPGetAction{Port: intstr.FromInt32(port)})))
	wantError(t, err, "httpGet: read answer: ", nil)
}

func TestHTTPGetOfANativeSidecar(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	port := serve(t, func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })
	c := call(get(corev1.HTTPGetAction{Port: intstr.FromString("admin")}))
	c.Container = "mesh"
	c.Pod.Spec.InitContainers[0].Ports = []corev1.ContainerPort{{Name: "admin", ContainerPort: port}}
	if err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), c); err != nil || len(asked) != 1 {
		t.Errorf("%v, asked %d times", err, len(asked))
	}
}

// Kubelet does not verify the certificate either: a pod's own has no name to verify.
func TestHTTPSGet(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	c := call(get(corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Port: intstr.FromInt32(serverPort(t, server.URL))}))
	if err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), c); err != nil {
		t.Error(err)
	}
}

func TestHTTPGetIsBoundedInTime(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"an answer without end": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("a"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(get(corev1.HTTPGetAction{Port: intstr.FromInt32(serve(t, handler))}))
			c.Timeout = 50 * time.Millisecond
			if err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), c); !errors.Is(err, hook.ErrTimeout) {
				t.Errorf("%v, want that it was cut off", err)
			}
		})
	}
}

// A container that writes without end costs its own connection and nothing else.
func TestHTTPGetReadsABoundedAnswer(t *testing.T) {
	t.Parallel()
	written := make(chan int, 1)
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sum := 0
		for r.Context().Err() == nil {
			n, err := w.Write([]byte(strings.Repeat("x", 1<<20)))
			if sum += n; err != nil {
				break
			}
		}
		written <- sum
	})
	c := call(get(corev1.HTTPGetAction{Port: intstr.FromInt32(port)}))
	if err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	select {
	case sum := <-written:
		if sum > 64<<20 {
			t.Errorf("%d bytes were taken", sum)
		}
	case <-time.After(10 * time.Second):
		t.Error("the connection stays open")
	}
}

func TestHTTPGetReadsABoundedHeader(t *testing.T) {
	t.Parallel()
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("x", 128<<10)) })
	if err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), call(get(corev1.HTTPGetAction{Port: intstr.FromInt32(port)}))); err == nil {
		t.Error("a header of 128 KiB is read")
	}
}

// The container may look at each of several values of one name, as with kubelet.
func TestHTTPGetSendsAllHeaders(t *testing.T) {
	t.Parallel()
	sent := make(chan []string, 1)
	port := serve(t, func(_ http.ResponseWriter, r *http.Request) { sent <- r.Header.Values("X-Hook") })
	headers := []corev1.HTTPHeader{{Name: "X-Hook", Value: "a"}, {Name: "x-hook", Value: "b"}}
	if err := hook.New(hook.Config{Addresses: address("127.0.0.1")}).Run(t.Context(), call(get(corev1.HTTPGetAction{Port: intstr.FromInt32(port), HTTPHeaders: headers}))); err != nil {
		t.Fatal(err)
	}
	if got := <-sent; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("sent %q", got)
	}
}

func TestHTTPGetWithoutAnAddress(t *testing.T) {
	t.Parallel()
	err := hook.New(hook.Config{Addresses: address("")}).Run(context.WithoutCancel(t.Context()), call(get(corev1.HTTPGetAction{Port: intstr.FromInt32(80)})))
	wantError(t, err, "the pod has no IP", nil)
}
