package plugin_test

import (
	"context"
	"errors"
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
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
)

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

// A plugin that does not stop, or fails to, delays neither the others nor the shutdown.
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

func TestAnotherBootOrderStartsThePluginAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := func(orderOfB int) *config.File {
			return &config.File{Plugins: []config.Plugin{{Name: "a", Config: &settings{}}, {Name: "b", BootOrder: orderOfB, Config: &settings{}}}}
		}
		s := newStage(t, *file(1), plain("a"), plain("b"))
		s.start(t)
		s.diary.take()
		if err := s.LoadConfig(t.Context(), file(-1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.check(t, "stop b", "end b", "init b", "start b")
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		s.check(t, "stop a", "end a", "stop b", "end b")
	})
}

// Readiness waits for plugins that have not been started: requests to them would get 404.
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
		time.Sleep(time.Hour)
		if s.Ready() {
			t.Error("a plugin that is running and not ready is given up, as one that waits for values of the pod")
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
