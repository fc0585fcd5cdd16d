package inpod

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hotupdate/inpod/metrics"
	"github.com/refit-project/refit/hotupdate/inpod/record"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/test/kit/logbuffer"
)

// away is an API server that does not respond; it notes when it is asked.
type away struct {
	record.API
	began time.Time
	asked []time.Duration
}

func (a *away) Get(context.Context, ownpod.Reference) ([]byte, error) {
	a.asked = append(a.asked, time.Since(a.began))
	return nil, errors.New("connection refused")
}

// waiting is a plugin that has restored nothing yet.
func waiting(log *logbuffer.Buffer) *Plugin {
	p := New().(*Plugin)
	p.config, p.metrics = &Config{}, metrics.New()
	p.host = plugin.Host{Logger: slog.New(slog.NewTextHandler(log, nil)), Observed: func() *corev1.Pod { return nil }}
	return p
}

// It goes on until the API server is back, and does not keep it from that.
func TestWhatTheWorkloadHasIsAskedForWithGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, api := waiting(&logbuffer.Buffer{}), &away{began: time.Now()}
		pod := &corev1.Pod{}
		pod.Name, pod.UID = "web-0", "u"
		p.record = record.New(record.Options{API: api, ConfigMap: "c", Pod: identity.Pod{Namespace: "games", Name: "web-0"}, Observed: func() *corev1.Pod { return pod }})
		p.setUnrestored(&unrestored{})
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		p.retryRestore(ctx)
		var seconds []int
		for _, at := range api.asked {
			seconds = append(seconds, int(at.Seconds()))
		}
		if diff := cmp.Diff([]int{5, 15, 35, 75, 135, 195}, seconds); diff != "" {
			t.Errorf("asked after (-want +got):\n%s", diff)
		}
		if said := p.Status().Message; !strings.Contains(said, "restore, will be tried again: ") || !strings.Contains(said, "connection refused") {
			t.Errorf("status %q", said)
		}
	})
}

// Whoever reads the log sees why the program does not have its files; after some attempts nothing more is to be expected.
func TestProgramThatCannotBeToldIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &logbuffer.Buffer{}
		p, began := waiting(log), time.Now()
		p.reloadWhenRunning(t.Context(), "v1")
		if tries, took := strings.Count(log.String(), "update failed"), time.Since(began); tries != 5 || took != 15*time.Second {
			t.Errorf("tried %d times in %s, want 5 in 15 s:\n%s", tries, took, log.String())
		}
	})
}
