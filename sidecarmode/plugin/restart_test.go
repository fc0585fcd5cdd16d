package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// An error or a panic of one plugin, in any of its methods, is its own affair.
func TestAFailingPluginIsRestartedAndTheOthersRunOn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*actor)
		want   string
	}{
		"error in Init":  {func(a *actor) { a.init = func() error { return errors.New("no such file") } }, "init: no such file"},
		"panic in Init":  {func(a *actor) { a.init = func() error { panic("oh") } }, "init: panic: oh"},
		"error in Start": {func(a *actor) { a.start = func(context.Context) error { return errors.New("broken") } }, "broken"},
		"panic in Start": {func(a *actor) { a.start = func(context.Context) error { panic("assignment to entry in nil map") } }, "panic: assignment to entry in nil map"},
		"end of Start":   {func(a *actor) { a.start = func(context.Context) error { return nil } }, "ended without being asked to"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var tries atomic.Int32
				s := newStage(t, config.File{}, func(d *diary) *actor {
					a := &actor{name: "bad", diary: d}
					tt.change(a)
					tries.Add(1)
					return a
				}, plain("good"))
				tries.Store(0)
				s.start(t)
				if !s.running(t, "good") || s.running(t, "bad") {
					t.Error("the good plugin does not run, or the bad one does")
				}
				status, err := s.statusOf("bad")
				if err != nil || status.LastError != tt.want || status.Healthy {
					t.Errorf("status %+v %v", status, err)
				}
				if diff := cmp.Diff([]string{"Failed PluginFailed plugin bad: " + tt.want}, s.events.take()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				time.Sleep(10 * time.Minute) // restarts after 1, 2, 4 ... 60, 60 s
				if n := tries.Load(); n < 10 || n > 20 {
					t.Errorf("started %d times in 10 minutes", n)
				}
				want := fmt.Sprintf("# HELP refit_sidecar_plugin_up 1 while the plugin runs and calls itself healthy.\n# TYPE refit_sidecar_plugin_up gauge\n" +
					"refit_sidecar_plugin_up{plugin=\"bad\"} 0\nrefit_sidecar_plugin_up{plugin=\"good\"} 1\n")
				if err := testutil.CollectAndCompare(s.Manager, strings.NewReader(want), "refit_sidecar_plugin_up"); err != nil {
					t.Error(err)
				}
				if !s.running(t, "good") {
					t.Error("the good plugin has ended")
				}
				if err := s.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestRestartPolicy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy string
		err    error
		again  bool
	}{
		"default":              {"", nil, true},
		"Always":               {plugin.Always, nil, true},
		"OnFailure, an end":    {plugin.OnFailure, nil, false},
		"OnFailure, a failure": {plugin.OnFailure, errors.New("x"), true},
		"Never":                {plugin.Never, errors.New("x"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, config.File{RestartPolicy: tt.policy}, func(d *diary) *actor {
					return &actor{name: "p", diary: d, start: func(context.Context) error { return tt.err }}
				})
				s.start(t)
				s.diary.take()
				time.Sleep(1500 * time.Millisecond)
				if again := len(s.diary.take()) > 0; again != tt.again {
					t.Errorf("started again: %t", again)
				}
				if err := s.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestBackoffIsForgottenAfterASteadyRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, config.File{}, func(d *diary) *actor {
			return &actor{name: "p", diary: d, start: func(ctx context.Context) error {
				select {
				case <-ctx.Done():
				case <-time.After(2 * time.Minute):
				}
				return nil
			}}
		})
		s.start(t)
		time.Sleep(10*2*time.Minute + 11*time.Second)
		if status, _ := s.statusOf("p"); status.Restarts != 10 {
			t.Errorf("%d restarts", status.Restarts)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicInStatusAndMetricsOfPlugins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "players"})
		var a *actor
		s := newStage(t, config.File{}, func(d *diary) *actor {
			a = &actor{name: "p", diary: d, status: func() plugin.Health { panic("no status") }}
			a.start = func(ctx context.Context) error { a.host.Metrics.MustRegister(gauge); <-ctx.Done(); return nil }
			return a
		})
		s.start(t)
		if status, err := s.statusOf("p"); err != nil || status.Message != "panic: no status" {
			t.Errorf("status %+v %v", status, err)
		}
		if families, err := s.Gather(); err != nil || len(families) != 1 {
			t.Errorf("metrics %v %v", families, err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if families, err := s.Gather(); err != nil || len(families) != 0 {
			t.Errorf("metrics of an ended plugin: %v %v", families, err)
		}
	})
}

// A panic in a goroutine of a plugin ends that plugin, which is started again, and not the others.
func TestAPanicInAPluginsWorkerDoesNotEndTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		s := newStage(t, config.File{},
			func(d *diary) *actor {
				return &actor{name: "broken", diary: d, start: func(ctx context.Context) error {
					starts++
					group, ctx := errgroup.WithContext(ctx)
					first := starts == 1
					plugin.Go(group, func() error {
						if first {
							panic("in a worker")
						}
						<-ctx.Done()
						return nil
					})
					plugin.Go(group, func() error { <-ctx.Done(); return nil })
					return group.Wait()
				}}
			},
			func(d *diary) *actor { return &actor{name: "other", diary: d} })
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for _, status := range s.Statuses() {
			want := map[string]int{"broken": 1, "other": 0}[status.Name]
			if !status.Running || status.Restarts != want {
				t.Errorf("%s: %+v", status.Name, status)
			}
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
