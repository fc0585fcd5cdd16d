package sidecarmode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/sidecarmode/server"
	"github.com/refit-project/refit/signal"
)

const (
	component     = "refit-sidecar"
	defaultHealth = ":5001"
	defaultProc   = "/proc"
)

// places are the places where packages of refit-sidecar count faults.
var places = []string{"plugin", "probe", "write"}

// sidecar is the program.
type sidecar struct {
	config Config
	logger *slog.Logger
	pod    identity.Pod
	first  *config.File // the configuration at the start
	// awaiting means that the last configuration has values of the pod, which had not been read.
	awaiting bool
	// podExpected means that the pod could not be read at the start, and will be when the API server responds.
	podExpected bool
	condition   string // type of the self-test's condition, or off

	api       *ownpod.Client // nil without a service account
	feed      *podFeed
	processes *signal.FS // nil if /proc cannot be used
	events    *ownpod.Events
	guard     *guard.Guard
	writer    *output.Writer
	manager   *plugin.Manager
	state     *state
	test      *tester
}

// Run runs the sidecar. It returns when ctx has ended and the plugins and all goroutines have ended, or when it cannot be
// started, for example because the configuration is invalid or an address is in use.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := closeProcess(); err != nil {
		c.Logger.Warn("the files of the sidecar may be read through /proc by a process with the same user", "err", err)
	}
	s, err := assemble(ctx, c)
	if err != nil {
		return err
	}
	file, digest, err := s.configure(ctx)
	if err != nil {
		s.sayUnstarted(ctx, err)
		return err
	}
	// Plugins end first. The goroutines that write their last results end after them.
	writers, endWriters := context.WithCancel(context.WithoutCancel(ctx))
	defer endWriters()
	group, writers := errgroup.WithContext(writers)
	if err := s.serve(writers, group, file); err != nil {
		endWriters()
		return errors.Join(err, group.Wait())
	}
	s.startWriters(writers, group)
	s.reapAsInit(writers, group)
	group.Go(func() error {
		defer endWriters()
		return s.work(ctx, writers, file, digest)
	})
	return group.Wait()
}

// configure reads the configuration and creates the plugins. There is no former configuration that it could use instead of an
// invalid one: it is not kept across a restart.
func (s *sidecar) configure(ctx context.Context) (file *config.File, digest string, err error) {
	if file, digest, err = s.readConfig(); err != nil {
		return nil, "", err
	}
	s.first = file
	s.state.setConfig(configState{File: s.config.file(), Digest: digest, Loaded: time.Now()})
	s.condition = cmp.Or(file.SelfTestCondition, defaultCondition)
	s.applyResourceLimits(file)
	if s.manager, err = s.newManager(file); err != nil {
		return nil, "", err
	}
	return file, digest, s.manager.LoadConfig(ctx, file)
}

// sayUnstarted sends the Event of a configuration with which the sidecar cannot start.
func (s *sidecar) sayUnstarted(ctx context.Context, err error) {
	if s.events == nil {
		return
	}
	s.sendEvent(result.Failed, "ConfigInvalid", "the sidecar cannot start, and kubelet starts it again until the file is valid: "+err.Error())
	ended, end := context.WithCancel(ctx)
	end()
	s.events.Run(ended) // sends what waits
}

// assemble creates the parts that do not depend on the configuration file.
func assemble(ctx context.Context, c Config) (*sidecar, error) {
	s := &sidecar{
		config: c, logger: c.Logger, pod: identity.Pod{Namespace: c.Namespace, Name: c.Pod, UID: c.UID}, feed: newPodFeed(),
	}
	connection, err := c.API, error(nil)
	if connection == nil {
		connection, err = ownpod.InCluster(component + "/" + c.Version)
	}
	if err != nil {
		c.Logger.Warn("results go to metrics and logs only", "err", err)
	} else {
		if s.api, err = ownpod.NewClient(connection); err != nil {
			return nil, err
		}
		s.events = ownpod.NewEvents(s.api, component, c.Logger)
		s.podExpected = s.feed.readFirst(ctx, s.api, s.pod, c.Logger)
		if pod := s.feed.latest(); pod != nil && s.pod.UID == "" {
			s.pod.UID = string(pod.UID)
		}
	}
	m := newMeter()
	s.state = newState(c.Version, m)
	s.guard = guard.New(guard.Config{Program: component, Faults: s.state.faults, Places: places, Logger: c.Logger})
	s.writer = output.New(output.Config{
		Patcher: patcher{s.api}, Recorder: recorder{s.events}, Meter: m, Guard: s.guard, Logger: c.Logger, Observe: s.state.observe,
	})
	// Only for its types; the one that runs is created when the file has been read.
	if s.manager, err = plugin.NewManager(plugin.Config{Factories: s.factories()}); err != nil {
		return nil, err
	}
	s.test = newTester(s)
	return s, nil
}

func (s *sidecar) factories() []plugin.Factory {
	if s.config.Factories == nil {
		return Builtin()
	}
	return s.config.Factories
}

func (s *sidecar) newManager(file *config.File) (*plugin.Manager, error) {
	processes, err := signal.New(cmp.Or(file.ProcRoot, defaultProc))
	if err != nil {
		s.logger.Warn("processes cannot be seen", "err", err)
	}
	s.processes = processes
	manager, err := plugin.NewManager(plugin.Config{
		Factories: s.factories(),
		Host: plugin.Host{
			Logger: s.logger, Pod: s.pod, Observed: s.feed.latest, Look: s.feed.reader(s.api, s.pod), Changes: s.feed.changes,
			Own: s.config.Container, Results: s.writer, API: s.api, Processes: s.processes, Tell: s.sendEvent, Guard: s.guard,
		},
	})
	if err != nil {
		return nil, err
	}
	s.state.manager = manager
	s.state.registry.MustRegister(manager)
	return manager, nil
}

// sendEvent sends an Event about our pod.
func (s *sidecar) sendEvent(state result.State, reason, message string) {
	recorder{s.events}.Event(output.Pod(s.pod), state, reason, foreign.Cut(message, result.MaxMessage))
}

// serve starts two servers: the API of the plugins, which may require authentication, and read-only health and metrics.
func (s *sidecar) serve(ctx context.Context, group *errgroup.Group, file *config.File) error {
	secure, err := server.TLSConfig(file.Server.TLS)
	if err != nil {
		return err
	}
	authenticated := file.Server.TokenFile != "" || file.Server.TLS.ClientCAFile != ""
	handler := server.LocalOnly(authenticated, server.Authorized(file.Server.TokenFile, s.state.api()))
	if err := server.Start(ctx, group, file.Server.Listen(), handler, secure); err != nil {
		return err
	}
	if address := cmp.Or(file.Health, defaultHealth); address != off {
		return server.Start(ctx, group, address, s.state.health(), nil)
	}
	return nil
}

// reapAsInit waits for orphaned processes if this program is PID 1, because they become its children.
func (s *sidecar) reapAsInit(ctx context.Context, group *errgroup.Group) {
	if os.Getpid() == 1 && s.processes != nil {
		group.Go(func() error { reap(ctx, s.processes, reapInterval, s.logger); return nil })
	}
}

// startWriters starts the goroutines that write results to the API and watch the pod.
func (s *sidecar) startWriters(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { return s.writer.Run(ctx) })
	if s.api == nil {
		return
	}
	group.Go(func() error { s.events.Run(ctx); return nil })
	group.Go(func() error { s.feed.follow(ctx, s.api, s.pod, s.logger); return nil })
}

// work runs the plugins until ctx or the writers end.
func (s *sidecar) work(ctx, writers context.Context, file *config.File, digest string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(writers, cancel)()
	if file.SidecarStartOrder == "After" {
		s.awaitOthers(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	err := s.manager.Start(ctx)
	if err == nil && ctx.Err() == nil {
		s.logger.Info("started", "pod", s.pod, "address", file.Server.Listen())
		group.Go(func() error { return s.watchConfig(ctx, digest) })
		group.Go(func() error { return s.test.run(ctx) })
		err = group.Wait()
	}
	last, end := context.WithTimeout(context.WithoutCancel(ctx), s.config.Grace)
	defer end()
	s.logger.Info("stopping")
	return errors.Join(err, s.manager.Stop(last))
}

// awaitOthers waits until the pod's other containers have been started, if the pod can be read.
func (s *sidecar) awaitOthers(ctx context.Context) {
	changes, end := s.feed.changes()
	defer end()
	for {
		pod := s.feed.latest()
		if pod == nil || othersStarted(pod, s.config.Container) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
		}
	}
}
