package kube_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/internal/kube"
)

// The API server gets each Event once, in order, and of a repeated one the count.
func TestEventsAreSentInOrderAndCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &eventsAPI{t: t}
		client, err := kube.NewClient(&rest.Config{Host: "http://api", Transport: api})
		if err != nil {
			t.Fatal(err)
		}
		events := client.Events("refit-daemon", "node-1", slog.New(slog.DiscardHandler))
		about := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web"}
		for _, message := range []string{"a", "b", "a", "c"} {
			events.Event(about, corev1.EventTypeNormal, "Killing", message)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); events.Run(ctx) }()
		time.Sleep(time.Hour) // long enough for anything that is sent again; the time of the test is not real
		cancel()
		<-done
		if diff := cmp.Diff([]string{"POST a x1", "POST b x1", "PATCH a x2", "POST c x1"}, api.sent); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}

// eventsAPI is the API server's part for Events, which records what is sent.
type eventsAPI struct {
	t     *testing.T
	first corev1.Event // the one that is repeated
	sent  []string
}

func (a *eventsAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	event := a.first
	decodeEvent(a.t, request.Body, &event)
	if a.first.Name == "" {
		a.first = event
	}
	name := strings.TrimPrefix(request.URL.Path, "/api/v1/namespaces/shop/events")
	if name != "" && name != "/"+a.first.Name {
		a.t.Errorf("%s of %s", request.Method, name)
	}
	a.sent = append(a.sent, fmt.Sprintf("%s %s x%d", request.Method, event.Message, event.Count))
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(answer).Encode(event); err != nil {
		a.t.Error(err)
	}
	return answer.Result(), nil
}

// With any number of Events of one namespace, an Event of another one is sent second at the latest; if the buffer is full, one of the
// namespace with the most is dropped. Events that the correlator drops delay nothing.
func TestEventsOfOneNamespaceDoNotDelayThoseOfAnother(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]func(n int) corev1.ObjectReference{
		"about many pods": func(n int) corev1.ObjectReference {
			return corev1.ObjectReference{Kind: "Pod", Namespace: "mallory", Name: fmt.Sprint("web-", n)}
		},
		"about one pod": func(int) corev1.ObjectReference {
			return corev1.ObjectReference{Kind: "Pod", Namespace: "mallory", Name: "web"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, sent, shop := time.Now(), 0, map[string]time.Duration{}
				client, err := kube.NewClient(&rest.Config{Host: "http://api", Transport: roundTrip(func(request *http.Request) *corev1.Event {
					var event corev1.Event
					decodeEvent(t, request.Body, &event)
					sent++
					if event.InvolvedObject.Namespace == "shop" {
						shop[event.Message] = time.Since(began)
					}
					return &event
				})})
				if err != nil {
					t.Fatal(err)
				}
				events := client.Events("refit-daemon", "node-1", slog.New(slog.DiscardHandler))
				for n := range 3000 {
					events.Event(flood(n), corev1.EventTypeNormal, "Killing", fmt.Sprint("message ", n))
				}
				for n := range 3 {
					about := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("web-", n)}
					events.Event(about, corev1.EventTypeNormal, "Killing", fmt.Sprint(n))
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); events.Run(ctx) }()
				time.Sleep(time.Hour) // the time of the test is not real
				cancel()
				<-done
				want := map[string]time.Duration{"0": 0, "1": 0, "2": 0} // the first ten wait for nothing
				if diff := cmp.Diff(want, shop); diff != "" {
					t.Errorf("sent of the other namespace, and after how long (-want +got):\n%s", diff)
				}
				if sent < 20 || sent > 1000 {
					t.Errorf("%d Events were sent", sent)
				}
			})
		})
	}
}

// Events of many namespaces are sent as often as Events of one.
func TestEventsOfManyNamespacesKeepTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		client, err := kube.NewClient(&rest.Config{Host: "http://api", Transport: roundTrip(func(request *http.Request) *corev1.Event {
			var event corev1.Event
			decodeEvent(t, request.Body, &event)
			sent++
			return &event
		})})
		if err != nil {
			t.Fatal(err)
		}
		events := client.Events("refit-daemon", "node-1", slog.New(slog.DiscardHandler))
		for n := range 500 {
			events.Event(corev1.ObjectReference{Kind: "Pod", Namespace: fmt.Sprint("n-", n%100), Name: fmt.Sprint("web-", n)}, corev1.EventTypeNormal, "Killing", "m")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); events.Run(ctx) }()
		time.Sleep(10*time.Second + time.Nanosecond)
		synctest.Wait()
		if sent != 60 {
			t.Errorf("%d Events in 10 s, want 10 at once and 5 a second", sent)
		}
		cancel()
		<-done
	})
}

// roundTrip answers each request with an Event.
type roundTrip func(*http.Request) *corev1.Event

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(answer).Encode(r(request))
	return answer.Result(), err
}

// client-go combines similar Events in a new one, which has to name the daemon's node too: the policy of the daemon's Events refuses others.
func TestCombinedEventsNameTheirNode(t *testing.T) {
	t.Parallel()
	const similar = 12 // two more than client-go sends alone
	sent := make(chan corev1.Event, similar)
	api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		var event corev1.Event
		decodeEvent(t, request.Body, &event)
		if request.Method == http.MethodPost {
			sent <- event
		}
		out.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(out).Encode(event); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(api.Close)
	client, err := kube.NewClient(&rest.Config{Host: api.URL, Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	events := client.Events("refit-daemon", "node-1", slog.New(slog.DiscardHandler))
	for i := range similar {
		events.Event(corev1.ObjectReference{Kind: "Node", Name: "node-1"}, corev1.EventTypeNormal, "PullImageSucceed", fmt.Sprint("image ", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); events.Run(ctx) }()
	for combined := false; !combined; {
		event := <-sent
		if event.ReportingInstance != "node-1" || event.ReportingController != "refit-daemon" || event.Source.Host != "node-1" {
			t.Errorf("%q is by %q on %q", event.Message, event.ReportingController, event.ReportingInstance)
		}
		combined = strings.HasPrefix(event.Message, "(combined from similar events)")
	}
	cancel()
	<-done
}

// decodeEvent reads what a client has sent, as protobuf or as a patch in JSON.
func decodeEvent(t *testing.T, from io.Reader, event *corev1.Event) {
	t.Helper()
	body, err := io.ReadAll(from)
	if wrapped, isProto := bytes.CutPrefix(body, []byte("k8s\x00")); isProto {
		var unknown runtime.Unknown
		err = errors.Join(err, unknown.Unmarshal(wrapped))
		err = errors.Join(err, event.Unmarshal(unknown.Raw))
	} else {
		err = errors.Join(err, json.Unmarshal(body, event))
	}
	if err != nil {
		t.Error(err)
	}
}
