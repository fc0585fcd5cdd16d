package probe_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/refit-project/refit/probe"
)

// A web server may send its clients round for ever.
func TestHTTPFollowsNineRedirects(t *testing.T) {
	t.Parallel()
	for end, want := range map[int]string{9: "here", 10: ""} {
		got := ask(t, func(w http.ResponseWriter, r *http.Request) {
			if n, _ := strconv.Atoi(r.URL.Path[1:]); n < end {
				w.Header().Set("Location", "/"+strconv.Itoa(n+1))
				w.WriteHeader(http.StatusFound)
				return
			}
			_, _ = w.Write([]byte("here"))
		}, func(c *probe.HTTPConfig) { c.URL += "/0" })
		if got.Message != want || got.State != probe.Succeeded {
			t.Errorf("%d redirects: %+v", end, got)
		}
	}
}

// What net/http puts before the error of a redirect is a URL, which may hold a password.
func TestHTTPErrorsAfterARedirectDoNotShowTheURL(t *testing.T) {
	t.Parallel()
	got := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://"+refusing(t)+"/token?secret")
		w.WriteHeader(http.StatusFound)
	}, nil)
	if got.State != probe.Failed || !strings.Contains(got.Message, "refused") || strings.Contains(got.Message, "token") {
		t.Errorf("%+v", got)
	}
}

// Half an answer would be shown as the state of a game.
func TestHTTPTakesNoHalfAnswer(t *testing.T) {
	t.Parallel()
	got := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("allo"))
	}, nil)
	check(t, got, probe.Failed, "read body: ")
	check(t, ask(t, status(http.StatusSwitchingProtocols), nil), probe.Failed, "status 101, want 200 to 399")
}

func TestGRPCOverTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	l, server := listen(t), grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&certified.TLS.Certificates[0])))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	done := make(chan struct{})
	go func() { _ = server.Serve(l); close(done) }()
	defer func() { server.Stop(); <-done }()
	for skip, want := range map[bool]probe.State{true: probe.Succeeded, false: probe.Failed} {
		g := &probe.GRPC{Address: l.Addr().String(), TLS: &tls.Config{InsecureSkipVerify: skip, MinVersion: tls.VersionTLS12}}
		if got := asked(t, g, time.Minute); got.State != want {
			t.Errorf("skip verification %t: %+v", skip, got)
		}
	}
	if got := asked(t, &probe.GRPC{Address: l.Addr().String()}, time.Minute); got.State != probe.Failed {
		t.Errorf("in plain text: %+v", got)
	}
}

// Only another container is a reason to abandon it.
func TestUpdateLetsTheProbeUnderWayEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		spec := probe.Spec{Timing: timing(), Prober: d.prober(func(ctx context.Context, n int) probe.Outcome {
			select {
			case <-time.After(500 * time.Millisecond):
				return well(ctx, n)
			case <-ctx.Done():
				return probe.Outcome{State: probe.Failed, Message: "abandoned"}
			}
		})}
		w := start(t, spec, d.report)
		time.Sleep(100 * time.Millisecond)
		spec.Period = 20 * time.Second
		if err := w.Update(spec); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		w.Stop()
		d.checkReports(t, report{500 * time.Millisecond, probe.Succeeded, "idle"})
	})
}
