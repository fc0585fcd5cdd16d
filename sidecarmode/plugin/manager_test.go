package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diary is what plugins did, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

// actor is a plugin that does what a test wants.
type actor struct {
	name   string
	diary  *diary
	init   func() error
	start  func(ctx context.Context) error
	stop   func(ctx context.Context) error
	status func() plugin.Health
	ready  func() bool
	host   plugin.Host
}

type settings struct {
	Text string `yaml:"text"`
}

func (a *actor) Name() string    { return a.name }
func (a *actor) Version() string { return "v1" }
func (a *actor) ConfigType() any { return &settings{} }

func (a *actor) Init(_ context.Context, c any, host plugin.Host) error {
	a.host = host
	text := ""
	if s, ok := c.(*settings); ok {
		text = s.Text
	}
	a.diary.write("init %s%s", a.name, text)
	if a.init != nil {
		return a.init()
	}
	return nil
}

func (a *actor) Start(ctx context.Context) error {
	a.diary.write("start %s", a.name)
	if a.start != nil {
		return a.start(ctx)
	}
	<-ctx.Done()
	a.diary.write("end %s", a.name)
	return nil
}

func (a *actor) Stop(ctx context.Context) error {
	a.diary.write("stop %s", a.name)
	if a.stop != nil {
		return a.stop(ctx)
	}
	return nil
}

func (a *actor) Status() plugin.Health {
	if a.status != nil {
		return a.status()
	}
	return plugin.Health{Healthy: true, Message: "fine"}
}

func (a *actor) Routes() map[string]http.Handler {
	return map[string]http.Handler{"GET /" + a.name: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })}
}

func (a *actor) Ready() bool { return a.ready == nil || a.ready() }

type stage struct {
	*plugin.Manager
	diary  *diary
	events *diary
}

func newStage(t *testing.T, file config.File, actors ...func(*diary) *actor) stage {
	t.Helper()
	s := stage{diary: &diary{}, events: &diary{}}
	c := plugin.Config{Host: plugin.Host{
		Logger: slog.New(slog.DiscardHandler),
		Tell:   func(state result.State, reason, message string) { s.events.write("%s %s %s", state, reason, message) },
	}}
	all := len(file.Plugins) == 0
	for _, make := range actors {
		c.Factories = append(c.Factories, func() plugin.Plugin { return make(s.diary) })
		name := make(s.diary).name
		if all {
			file.Plugins = append(file.Plugins, config.Plugin{Name: name})
		}
	}
	var err error
	if s.Manager, err = plugin.NewManager(c); err != nil {
		t.Fatal(err)
	}
	if err := s.LoadConfig(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	return s
}

func plain(name string) func(*diary) *actor {
	return func(d *diary) *actor { return &actor{name: name, diary: d} }
}

func (s stage) start(t *testing.T) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (s stage) check(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.diary.take()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func (s stage) running(t *testing.T, name string) bool {
	t.Helper()
	status, err := s.statusOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return status.Running
}

func TestBootOrderAndReverseStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := config.File{Plugins: []config.Plugin{{Name: "c", BootOrder: 2}, {Name: "a"}, {Name: "b", BootOrder: 1}}}
		s := newStage(t, file, plain("a"), plain("b"), plain("c"))
		s.check(t)
		if s.Ready() {
			t.Error("ready before the start")
		}
		s.start(t)
		inits := slices.DeleteFunc(s.diary.take(), func(line string) bool { return !strings.HasPrefix(line, "init") })
		if diff := cmp.Diff([]string{"init a", "init b", "init c"}, inits); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		var names []string
		for _, status := range s.Statuses() {
			names = append(names, status.Name)
			if !status.Running || !status.Healthy || status.Version != "v1" {
				t.Errorf("status %+v", status)
			}
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		s.check(t, "stop c", "end c", "stop b", "end b", "stop a", "end a")
	})
}

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

// Status and metrics are read by others while plugins come, fail and go.
func TestStatusesWhileThePluginsChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, config.File{}, plain("a"), func(d *diary) *actor {
			return &actor{name: "b", diary: d, start: func(context.Context) error { return errors.New("broken") }}
		})
		s.start(t)
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for ctx.Err() == nil {
					for _, status := range s.Statuses() {
						if status.Name == "b" && status.Running && status.LastError == "" && status.Restarts > 0 {
							t.Errorf("status %+v", status)
						}
					}
					_, _, _ = s.Ready(), s.Needs(), testutil.CollectAndCount(s.Manager)
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		for range 20 {
			time.Sleep(time.Second)
			if err := s.LoadConfig(t.Context(), &config.File{}); err != nil {
				t.Error(err)
			}
			if err := s.LoadConfig(t.Context(), &config.File{Plugins: []config.Plugin{{Name: "a"}}}); err != nil {
				t.Error(err)
			}
		}
		cancel()
		readers.Wait()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A plugin that does not stop, or stops badly, holds up neither the others nor the end.
func TestStopWithinGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, config.File{}, plain("a"), func(d *diary) *actor {
			return &actor{name: "slow", diary: d, stop: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}}
		}, func(d *diary) *actor {
			return &actor{name: "panics", diary: d, stop: func(context.Context) error { panic("unimplemented") }}
		})
		s.start(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := s.Stop(ctx)
		if err == nil || !strings.Contains(err.Error(), "stop plugin slow: ") || !strings.Contains(err.Error(), "stop plugin panics: panic: unimplemented") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		synctest.Wait()
		if lines := s.diary.take(); !slices.Contains(lines, "end a") || !slices.Contains(lines, "end slow") {
			t.Errorf("%q", lines)
		}
	})
}

func TestStopLetsAPluginFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cancelled bool
		s := newStage(t, config.File{}, func(d *diary) *actor {
			finish := make(chan struct{})
			return &actor{name: "p", diary: d,
				start: func(ctx context.Context) error {
					<-finish
					cancelled = ctx.Err() != nil
					return nil
				},
				stop: func(context.Context) error {
					time.Sleep(3 * time.Second)
					close(finish)
					synctest.Wait()
					return nil
				},
			}
		})
		s.start(t)
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if cancelled {
			t.Error("the context ended before Stop")
		}
	})
}

func TestLoadConfigChangesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := func(name, text string) config.Plugin {
			return config.Plugin{Name: name, Text: text, Config: &settings{Text: text}}
		}
		s := newStage(t, config.File{Plugins: []config.Plugin{p("a", "1"), p("b", "1"), p("c", "1")}}, plain("a"), plain("b"), plain("c"), plain("d"))
		s.start(t)
		s.diary.take()
		if err := s.LoadConfig(t.Context(), &config.File{Plugins: []config.Plugin{p("a", "1"), p("b", "2"), p("d", "1")}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := slices.DeleteFunc(s.diary.take(), func(l string) bool { return strings.HasPrefix(l, "start") })
		if diff := cmp.Diff([]string{"stop c", "end c", "stop b", "end b", "init b2", "init d1"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Readiness waits for plugins whose turn has not come: a request for them would be told that there is no such path.
func TestNotReadyWhileAnEarlierPluginBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &actor{name: "a", diary: &diary{}, init: func() error { time.Sleep(20 * time.Second); return nil }}
		s, err := plugin.NewManager(plugin.Config{
			Host: plugin.Host{Logger: slog.New(slog.DiscardHandler)},
			Factories: []plugin.Factory{
				func() plugin.Plugin { return struct{ plugin.Plugin }{slow} }, // readiness does not wait for it
				func() plugin.Plugin { return plain("b")(&diary{}) },
			},
		})
		if err == nil {
			err = s.LoadConfig(t.Context(), &config.File{Plugins: []config.Plugin{{Name: "a"}, {Name: "b", BootOrder: 1}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan error, 1)
		go func() { started <- s.Start(t.Context()) }()
		for range 19 {
			time.Sleep(time.Second)
			if s.Ready() {
				t.Fatal("ready before plugin b is there")
			}
		}
		if err := <-started; err != nil || !s.Ready() {
			t.Errorf("not ready when all have been started: %v", err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRoutesAndReadiness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var well, isReady atomic.Bool
		s := newStage(t, config.File{}, func(d *diary) *actor {
			return &actor{name: "p", diary: d, ready: isReady.Load, init: func() error {
				if !well.Load() {
					return errors.New("not yet")
				}
				return nil
			}}
		})
		get := func() int {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/p", http.NoBody))
			return w.Code
		}
		if get() != 404 {
			t.Errorf("before the start: %d", get())
		}
		s.start(t)
		if get() != 503 || s.Ready() {
			t.Errorf("while it is down: %d, ready %t", get(), s.Ready())
		}
		well.Store(true)
		time.Sleep(2 * time.Second)
		if get() != 200 || s.Ready() {
			t.Errorf("while it is not ready: %d, ready %t", get(), s.Ready())
		}
		isReady.Store(true)
		if !s.Ready() {
			t.Error("not ready")
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if get() != 404 {
			t.Errorf("after the end: %d", get())
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

// An unknown plugin of the configuration is an error, and two of one name are.
func TestUnknownAndDoublePlugins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, config.File{Plugins: []config.Plugin{{Name: "a"}}}, plain("a"))
		s.start(t)
		err := s.LoadConfig(t.Context(), &config.File{Plugins: []config.Plugin{{Name: "a"}, {Name: "c"}}})
		if !errors.Is(err, plugin.ErrUnknownPlugin) {
			t.Errorf("unknown: %v", err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	factory := func() plugin.Plugin { return plain("a")(nil) }
	if _, err := plugin.NewManager(plugin.Config{Factories: []plugin.Factory{factory, factory}}); err == nil {
		t.Error("two plugins of one name")
	}
}

// statusOf is the status of one plugin.
func (s stage) statusOf(name string) (plugin.Status, error) {
	for _, status := range s.Statuses() {
		if status.Name == name {
			return status, nil
		}
	}
	return plugin.Status{}, plugin.ErrUnknownPlugin
}
