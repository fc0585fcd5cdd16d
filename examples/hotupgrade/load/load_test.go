package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

// load runs against a handler until it has answered n requests.
func load(t *testing.T, n int64, handler func(w http.ResponseWriter, number int64)) (intervals []traffic.Interval, total traffic.Interval) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var answered atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		number := answered.Add(1)
		handler(w, number)
		if number >= n {
			cancel()
		}
	}))
	defer server.Close()
	var out bytes.Buffer
	ran := run(ctx, server.Listener.Addr().String(), 4, 500, json.NewEncoder(&out))
	intervals, total, err := traffic.Read(&out)
	if err != nil || total.Requests() != ran.Requests() {
		t.Fatalf("printed %+v, %v; want %+v", total, err, ran)
	}
	return intervals, total
}

func TestAnswersAreCountedByVersion(t *testing.T) {
	t.Parallel()
	intervals, total := load(t, 200, func(w http.ResponseWriter, number int64) {
		version := "1\n"
		if number > 100 {
			version = "2\n"
		}
		_, _ = w.Write([]byte(version))
	})
	if total.Answers["1"] != 100 || total.Answers["2"] < 100 || total.Failed != 0 || total.Kept != 2 || total.Opened < 50 {
		t.Errorf("got %+v", total)
	}
	sum := 0
	for _, i := range intervals {
		sum += i.Requests()
	}
	if len(intervals) < 2 || sum > total.Requests() {
		t.Errorf("%d requests in %d intervals, %d in all", sum, len(intervals), total.Requests())
	}
}

// A client of net/http would have tried these again, and nobody would have noticed.
func TestRequestsOnClosedConnectionsAreFailures(t *testing.T) {
	t.Parallel()
	intervals, total := load(t, 100, func(w http.ResponseWriter, number int64) {
		switch number % 10 {
		case 0:
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = connection.Close()
			}
		case 5:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte("1"))
		}
	})
	if total.Failed < 20 || total.Refused != 0 || total.Kept <= 2 || total.Error == "" {
		t.Errorf("got %+v", total)
	}
	kept, fresh := 0, 0
	for _, i := range intervals {
		for _, failure := range i.Failures {
			if failure.Local == "" || failure.Age <= 0 || failure.Error == "" || failure.Refused || failure.Time.IsZero() {
				t.Errorf("failure %+v", failure)
			}
			if failure.Kept {
				kept++
			} else {
				fresh++
			}
		}
	}
	if kept == 0 || fresh == 0 {
		t.Errorf("%d failures on kept connections, %d on new ones", kept, fresh)
	}
}

func TestRefusedConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := &client{address: listener.Addr().String(), tally: newTally(json.NewEncoder(&bytes.Buffer{}))}
	answer, failure := c.request(t.Context())
	c.tally.add(answer, failure, time.Millisecond)
	failures := c.tally.current.Failures
	if total := c.tally.end(); total.Refused != 1 || total.Failed != 1 || total.Requests() != 1 {
		t.Errorf("got %+v", total)
	}
	if len(failures) != 1 {
		t.Fatalf("failures %+v", failures)
	}
	if local, err := netip.ParseAddrPort(failures[0].Local); err != nil || !local.Addr().IsLoopback() || local.Port() == 0 {
		t.Errorf("local address %q, want the port that was refused", failures[0].Local)
	}
}

func TestALogWithoutAnEndIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, log := range []string{"", `{"failed":0}`, "no JSON"} {
		if _, _, err := traffic.Read(bytes.NewBufferString(log)); err == nil {
			t.Errorf("%q is taken", log)
		}
	}
}
