// Package engine carries out ContainerRecreateRequests, for refit-daemon and for refit-sidecar. For the first request of
// a pod it observes the pod and its containers, decides by crr.Plan, stores the status, and only then begins the decided
// action.
//
// An engine stops at most one instance of each container for a request. The instance is in the stored request before
// anything is done to it, and the next engine reads it from there after a crash.
//
// The order of these steps, the actions in progress and the writes that the cache does not have yet belong here. So do
// the goroutines of actions; Wait waits for them. Clients, queues and what a stop consists of belong in the adapters
// that implement the interfaces of Config.
package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

// Observer reads pods and their containers.
type Observer interface {
	// Pod returns a pod, or nil if there is no such pod here any more.
	Pod(ctx context.Context, pod identity.Pod) (*corev1.Pod, error)
	// Containers returns an observation of the request's containers, without the fields that do not come from the pod or
	// its containers. stopping reports whether a stop of an instance is in progress. An error says that the containers
	// cannot be observed now.
	Containers(ctx context.Context, request *crr.Request, pod *corev1.Pod, stopping func(identity.ContainerID) bool) (crr.Observation, error)
}

// Store writes requests to the API server, and returns them as stored. A write fails if the request has changed since
// it was read.
type Store interface {
	WriteStatus(ctx context.Context, request *crr.Request, status crr.Status) (*crr.Request, error)
	// KeepsConditions reports whether the API server stores conditions of requests.
	KeepsConditions() bool
}

// Annotator writes an annotation of a request, like a Store.
type Annotator interface {
	Annotate(ctx context.Context, request *crr.Request, key, value string) (*crr.Request, error)
}

// Actor performs actions.
type Actor interface {
	// Act performs an action and returns when it has ended. It catches panics.
	Act(ctx context.Context, action Action) Result
}

// Reporter reports what is done for requests.
type Reporter interface {
	// Step is called when a step begins. The returned function is called when it has ended.
	Step(ctx context.Context, request *crr.Request) (context.Context, func(crr.Decision, error))
	// Stored is called when the status that follows from an observation has been stored. request is the version before.
	Stored(ctx context.Context, request *crr.Request, status crr.Status, observed crr.Observation, now time.Time)
	// Ended is called when a request has ended with this status. took is its duration by the API server's clock.
	Ended(request *crr.Request, status crr.Status, took time.Duration)
}

// Config configures an Engine. Every field except Annotator and Reporter is required.
type Config struct {
	Observer Observer
	Store    Store
	// Annotator is nil if this process may not write annotations. If the CRD has no field for the stopped instance, only
	// the instance at admission is stopped then.
	Annotator Annotator
	Actor     Actor
	Reporter  Reporter // nil reports nothing
	// Deleted reports whether the error of a write says that the request does not exist any more.
	Deleted func(error) bool
	// Changed is called when an action of the pod has ended. Next has to be called then.
	Changed func(identity.Pod)
	// ClockOffset returns the API server's clock minus the local clock.
	ClockOffset func() time.Duration
	Options     crr.Options
	// MaxConcurrent limits the actions in progress.
	MaxConcurrent int
	Logger        *slog.Logger
}

// Engine carries out requests, one at a time for each pod.
type Engine struct {
	Config

	*requests
	slots   *slots
	running sync.WaitGroup // actions
}

// New returns an Engine without requests.
func New(config Config) *Engine {
	if config.Reporter == nil {
		config.Reporter = noReports{}
	}
	return &Engine{Config: config, requests: newRequests(), slots: newSlots(config.MaxConcurrent)}
}

// Wait waits for the actions in progress. It must be called after all calls of Next have returned.
func (e *Engine) Wait() { e.running.Wait() }

// noReports is a Reporter that reports nothing.
type noReports struct{}

func (noReports) Step(ctx context.Context, _ *crr.Request) (context.Context, func(crr.Decision, error)) {
	return ctx, func(crr.Decision, error) {}
}
func (noReports) Stored(context.Context, *crr.Request, crr.Status, crr.Observation, time.Time) {}
func (noReports) Ended(*crr.Request, crr.Status, time.Duration)                                {}
