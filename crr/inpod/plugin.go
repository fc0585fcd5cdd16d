package inpod

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/selftest"
)

// Name is the name of the plugin in the configuration.
const Name = "container_recreate"

const (
	// crdRetry is the interval between checks whether the API server serves requests yet.
	crdRetry = 30 * time.Second
	// findTimeout limits one such check.
	findTimeout = 10 * time.Second
)

// Config is the configuration of the plugin. It is empty.
type Config struct{}

// Plugin implements plugin.Plugin.
type Plugin struct {
	host plugin.Host

	mu      sync.Mutex
	waiting error // why requests cannot be read
}

// New is the factory of the plugin.
func New() plugin.Plugin { return &Plugin{} }

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return Name }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return "v1.0.0" }

// ConfigType implements plugin.Plugin.
func (p *Plugin) ConfigType() any { return &Config{} }

// Init implements plugin.Plugin.
func (p *Plugin) Init(_ context.Context, _ any, host plugin.Host) error {
	if host.API == nil {
		return errors.New("no API server: requests cannot be read")
	}
	if host.Processes == nil {
		return errors.New("processes cannot be seen here")
	}
	p.host = host
	return nil
}

// Stop implements plugin.Plugin. The next sidecar resumes a stop in progress: the instance is recorded in the request's
// status.
func (p *Plugin) Stop(context.Context) error { return nil }

// Status implements plugin.Plugin.
func (p *Plugin) Status() plugin.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting != nil {
		return plugin.Health{Message: p.waiting.Error()}
	}
	return plugin.Health{Healthy: true}
}

// Needs implements plugin.Needer.
func (p *Plugin) Needs() plugin.Needs {
	of := ownpod.Reference{
		Group: v1beta1.Group, Version: v1beta1.GroupVersion().Version, Resource: "containerrecreaterequests", Namespace: p.host.Pod.Namespace,
	}
	status := of
	status.Subresource = "status"
	return plugin.Needs{Signals: true, Access: []selftest.Need{{Verb: "list", Of: of}, {Verb: "watch", Of: of}, {Verb: "patch", Of: status}}}
}

// Start implements plugin.Plugin.
func (p *Plugin) Start(ctx context.Context) error {
	requests := p.await(ctx)
	if requests == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	news := make(chan map[string]*v1beta1.ContainerRecreateRequest, 1)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		requests.Follow(ctx, func(all map[string]*v1beta1.ContainerRecreateRequest) {
			select {
			case <-news:
			default:
			}
			news <- all
		}, ownpod.Log(p.host.Logger, ownpod.Selection{Of: requests.Reference()}))
	}()
	defer func() {
		cancel()
		<-followed
	}()
	return p.loop(ctx, p.newRunner(requests, p.host.Processes, p.host.API.ClockOffset), news)
}

// await waits until the UID of the pod is known and the API server serves requests, and logs what it waits for. It
// returns nil if ctx ends first.
func (p *Plugin) await(ctx context.Context) *ownpod.Requests {
	said := ""
	for {
		requests, err := p.find(ctx)
		if err == nil || ctx.Err() != nil {
			return requests
		}
		if text := err.Error(); text != said {
			p.host.Logger.Warn("ContainerRecreateRequests are not carried out because they cannot be read", "err", err)
			said = text
		}
		p.setWaiting(err)
		pause := lastRetry
		if errors.Is(err, ownpod.ErrNotFound) {
			pause = crdRetry
		}
		if wait.For(ctx, pause) != nil {
			return nil
		}
	}
}

// find returns the requests of the pod, selected by the pod's UID.
func (p *Plugin) find(ctx context.Context) (*ownpod.Requests, error) {
	pod := p.host.Pod
	if observed := p.host.Observed(); pod.UID == "" && observed != nil {
		pod.UID = string(observed.UID)
	}
	if pod.UID == "" {
		return nil, errors.New("UID of the pod is not known: set POD_UID from fieldRef metadata.uid")
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	requests, err := p.host.API.Requests(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("look for ContainerRecreateRequests: %w", err)
	}
	p.setWaiting(nil)
	return requests, nil
}

func (p *Plugin) setWaiting(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = err
}
