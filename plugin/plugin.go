package plugin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin/selftest"
	"github.com/refit-project/refit/signal"
)

// Plugin is one feature of the sidecar. It has the methods of the KEP's interface, with contexts.
//
// The Manager calls Init, then Start, in one goroutine. It calls Stop from another goroutine while Start runs. After an
// error or a panic a new Plugin is created, so each one is started at most once.
// or a panic a new Plugin is made, so one is started at most once.
type Plugin interface {
	// Name is the name in the configuration file.
	Name() string
	Version() string
	// ConfigType returns a pointer to a new configuration, into which the plugin's part of the file is read: a struct with
	// yaml tags. If it has a method Validate() error, that is called.
	ConfigType() any
	// Init receives the configuration, of ConfigType's type, and prepares the plugin. It returns soon.
	Init(ctx context.Context, config any, host Host) error
	// Start runs the plugin until ctx ends, and returns nil then. It leaves no goroutine running.
	Start(ctx context.Context) error
	// Stop finishes the work in progress, as far as ctx allows. After it the context of Start ends.
	Stop(ctx context.Context) error
	// Status is called at any time after Init, by any goroutine.
	Status() Health
}

// Health is the health that a plugin reports.
type Health struct {
	Healthy bool   `json:"healthy"`
	Message string `json:"message,omitempty"`
	// Info is additional information as JSON.
	Info any `json:"info,omitempty"`
}

// Server is a Plugin with HTTP endpoints on the sidecar's server, which authenticates callers. Routes returns handlers by
// pattern of net/http.ServeMux; it is called before Init. While the plugin does not run they answer 503.
type Server interface {
	Routes() map[string]http.Handler
}

// Readier is a Plugin that the pod's readiness waits for.
type Readier interface {
	Ready() bool
}

// Needer is a Plugin that reports, after Init, what it needs from its environment.
type Needer interface {
	Needs() Needs
}

// Needs of a plugin.
type Needs struct {
	// Signals means that processes of other containers have to be visible and signalled.
	Signals bool
	// Access are the required permissions in the API.
	Access []selftest.Need
	// Folders have to be writable.
	Folders []string
}

// NeedsOf returns the permissions that outputs need.
func NeedsOf(outputs []output.Output) []selftest.Need {
	var needs []selftest.Need
	for _, o := range output.Objects(outputs) {
		ref := ownpod.Reference{
			Group: o.Object.Group, Version: o.Object.Version, Resource: o.Object.Resource,
			Namespace: o.Object.Namespace, Name: o.Object.Name,
		}
		needs = append(needs, selftest.Need{Verb: "get", Of: ref})
		ref.Subresource = o.Subresource
		needs = append(needs, selftest.Need{Verb: "patch", Of: ref})
	}
	return needs
}

// Factory returns a new plugin.
type Factory func() Plugin

// Results writes results; *output.Writer implements it.
type Results interface {
	Put(source string, outputs []output.Output, entry result.Entry)
	Drop(source string)
	Flush(ctx context.Context, source string) error
}

// Host is the environment of a plugin. Fields that may be nil say so; a plugin that needs one anyway fails in Init.
type Host struct {
	Logger *slog.Logger
	// Pod is the pod of the sidecar.
	Pod identity.Pod
	// Observed returns the last known pod; nil if it cannot be read.
	Observed func() *corev1.Pod
	// Look reads the pod now, for Observed, because the watch comes back late after an outage of the API server. It has its
	// own timeout, and is nil without an API server.
	Look func(context.Context) error
	// Changes returns a channel that receives a token after changes of the pod, and a function that stops it.
	Changes func() (<-chan struct{}, func())
	// Own is the name of the sidecar's container.
	Own string
	// Results writes results to the API.
	Results Results
	// API is nil without an API server.
	API *ownpod.Client
	// Processes is nil if /proc cannot be used.
	Processes *signal.FS
	// Tell sends an Event about the pod.
	Tell func(state result.State, reason, message string)
	// Guard counts panics of plugins, and of what they run. It may be nil.
	Guard *guard.Guard
	// Metrics is the plugin's registry. Its metrics are removed when the plugin ends.
	Metrics prometheus.Registerer
}
