package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
)

// An error or a panic of one plugin, in any of its methods, does not affect the others.
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
				if n := testutil.ToFloat64(s.faults.WithLabelValues("plugin", "panic")); strings.HasPrefix(name, "panic") != (n == 1) {
					t.Errorf("%v panics are counted", n)
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

// Each pause is twice as long as the one before: a plugin that fails for a moment runs again soon.
func TestPausesBetweenRestartsDouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var after []int // seconds
		s := newStage(t, config.File{}, func(d *diary) *actor {
			return &actor{name: "p", diary: d, start: func(context.Context) error {
				after = append(after, int(time.Since(began).Seconds()))
				return errors.New("x")
			}}
		})
		s.start(t)
		time.Sleep(200 * time.Second)
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int{0, 1, 3, 7, 15, 31, 63, 123, 183}, after); diff != "" {
			t.Errorf("started after (-want +got):\n%s", diff)
		}
	})
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
					plugin.Go(nil, "p", group, func() error {
						if first {
							panic("in a worker")
						}
						<-ctx.Done()
						return nil
					})
					plugin.Go(nil, "p", group, func() error { <-ctx.Done(); return nil })
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

// hanging is a plugin whose Init ends only with its context.
type hanging struct{ *actor }

func (hanging) Init(ctx context.Context, _ any, _ plugin.Host) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAPluginThatHangsHoldsUpTheNextForHalfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, began := &diary{}, time.Now()
		manager, err := plugin.NewManager(plugin.Config{Host: plugin.Host{Logger: slog.New(slog.DiscardHandler)}, Factories: []plugin.Factory{
			func() plugin.Plugin { return hanging{&actor{name: "hangs", diary: d}} },
			func() plugin.Plugin { return &actor{name: "next", diary: d} },
		}})
		if err != nil {
			t.Fatal(err)
		}
		file := &config.File{RestartPolicy: plugin.Never, Plugins: []config.Plugin{{Name: "hangs"}, {Name: "next", BootOrder: 1}}}
		if err := errors.Join(manager.LoadConfig(t.Context(), file), manager.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("started after %s", took)
		}
		if err := manager.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
