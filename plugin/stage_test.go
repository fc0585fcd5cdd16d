package plugin_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diary records what plugins did, in order.
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
	needs  plugin.Needs
	host   plugin.Host
}

type settings struct {
	Text string `yaml:"text"`
}

func (a *actor) Name() string { return a.name }

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

func (a *actor) Needs() plugin.Needs { return a.needs }

func (a *actor) Ready() bool { return a.ready == nil || a.ready() }

type stage struct {
	*plugin.Manager
	diary  *diary
	events *diary
	faults *prometheus.CounterVec
}

func newStage(t *testing.T, file config.File, actors ...func(*diary) *actor) stage {
	t.Helper()
	s := stage{diary: &diary{}, events: &diary{}, faults: prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"where", "fault"})}
	c := plugin.Config{Host: plugin.Host{
		Logger: slog.New(slog.DiscardHandler),
		Guard:  guard.New(guard.Config{Faults: s.faults, Logger: slog.New(slog.DiscardHandler)}),
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

// statusOf is the status of one plugin.
func (s stage) statusOf(name string) (plugin.Status, error) {
	for _, status := range s.Statuses() {
		if status.Name == name {
			return status, nil
		}
	}
	return plugin.Status{}, plugin.ErrUnknownPlugin
}
