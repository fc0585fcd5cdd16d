package kube_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/internal/kube"
)

// After an outage, however long, the caches are back within seconds: no back-off has grown meanwhile.
func TestCachesComeBackSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"half a minute": 30 * time.Second, "five minutes": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				back := time.Now().Add(outage)
				server := roundTripper(func(request *http.Request) (*http.Response, error) {
					if time.Now().Before(back) {
						return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
					}
					return podStream(t, request), nil
				})
				client, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: server})
				if err != nil {
					t.Fatal(err)
				}
				pods, err := client.Pods("node-1")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); pods.RunWithContext(ctx) }()
				for !pods.HasSynced() {
					time.Sleep(100 * time.Millisecond)
				}
				if late := time.Since(back); late > 4*time.Second {
					t.Errorf("the cache is back %s after the API server", late)
				}
				cancel()
				<-done
			})
		})
	}
}

// podStream answers a watch with the end of an empty list, and stays open.
func podStream(t *testing.T, request *http.Request) *http.Response {
	t.Helper()
	body, err := json.Marshal(map[string]any{"type": "BOOKMARK", "object": corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
	}})
	if err != nil {
		t.Error(err)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: &openBody{data: body, done: request.Context().Done()},
	}
}

// openBody gives its data and then nothing until the request ends.
type openBody struct {
	data []byte
	done <-chan struct{}
}

func (b *openBody) Read(p []byte) (int, error) {
	if len(b.data) == 0 {
		<-b.done
		return 0, context.Canceled
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *openBody) Close() error { return nil }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
