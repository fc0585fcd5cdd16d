package callers_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/refit-project/refit/manager/callers"
	"github.com/refit-project/refit/test/kit/logbuffer"
)

// apiServer is the address of the API server of the tests, tenant the one of a pod.
const apiServer, tenant = "192.168.0.2", "10.0.0.5"

// world is a webhook with the check in front of it, and the API server that the check reads.
type world struct {
	*controllertest.FakeInformer
	t       *testing.T
	callers *callers.Callers
	log     logbuffer.Buffer
	metrics *prometheus.Registry
	down    bool // the API server refuses reads
	reads   int  // of the addresses of API servers
}

// informers is a cache that has only pods.
type informers struct {
	crcache.Informers
	pods crcache.Informer
}

func (i informers) GetInformer(context.Context, client.Object, ...crcache.InformerGetOption) (crcache.Informer, error) {
	return i.pods, nil
}

func newWorld(t *testing.T, options ...controllertest.InformerOption) *world {
	t.Helper()
	w := &world{t: t, metrics: prometheus.NewRegistry(), FakeInformer: controllertest.NewFakeInformer(options...)}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{apiServer}}}}
	live := interceptor.NewClient(fake.NewClientBuilder().WithObjects(slice).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, client client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if w.reads++; w.down {
				return errors.New("the API server is down")
			}
			return client.Get(ctx, key, object, options...)
		},
	})
	var err error
	w.callers, err = callers.New(callers.Config{RefusePods: true, AllowedNamespaces: []string{"kube-system"}, Metrics: w.metrics, Logger: slog.New(slog.NewTextHandler(&w.log, nil))})
	if err == nil {
		err = w.callers.Watch(t.Context(), informers{pods: w}, live)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// body is of a review that nobody may read.
type body struct{ t *testing.T }

func (b body) Read([]byte) (int, error) {
	b.t.Error("the body of a refused review was read")
	return 0, errors.New("not to be read")
}

// call returns whether a call from an address reaches the webhook, and how long that took.
func (w *world) call(address string) (reached bool, took time.Duration) {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/mutate", body{w.t})
	request.RemoteAddr = address
	response, began := httptest.NewRecorder(), time.Now()
	w.callers.Check(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })).ServeHTTP(response, request)
	if want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[reached]; response.Code != want {
		w.t.Errorf("status %d, reached %t", response.Code, reached)
	}
	if !reached && (!strings.Contains(response.Body.String(), "only the API server") || response.Header().Get("Connection") != "close") {
		w.t.Errorf("refused with %s %v", response.Body, response.Header())
	}
	return reached, time.Since(began)
}

// calls returns how many calls of a caller were counted.
func (w *world) calls(caller string) float64 {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == caller {
			return m.GetCounter().GetValue()
		}
	}
	w.t.Fatalf("no calls of %q are counted", caller)
	return 0
}

func podAt(namespace, name, address string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, address
	for _, c := range change {
		c(pod)
	}
	return pod
}

func inHostNetwork(p *corev1.Pod) { p.Spec.HostNetwork = true }
