package plugin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kube/ownpod"
	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/result/output"
	"github.com/refit-project/refit/sidecarmode/selftest"
	"github.com/refit-project/refit/signal"
)

// Plugin is one ability of the sidecar. It has the methods of the KEP's interface, with contexts.
//
// The Manager calls Init, then Start, in one goroutine. Stop comes from another while Start runs. After an error
// or a panic a new Plugin is made, so one is started at most once.
type Plugin interface {
	// Name is the one in the configuration file.
	Name() string
	Version() string
	// ConfigType returns a pointer to a new configuration, into which the plugin's part of the file is read: a
	// struct with yaml tags. If it has a method Validate() error, that is called.
	ConfigType() any
	// Init takes the configuration, of ConfigType's type, and prepares. It returns soon.
	Init(ctx context.Context, config any, host Host) error
	// Start runs the plugin until ctx ends, and returns nil then. It leaves no goroutine behind.
	Start(ctx context.Context) error
	// Stop lets what is under way come to a good end, as far as ctx allows; the end of Start's context follows.
	Stop(ctx context.Context) error
	// Status is called at any time after Init, by any goroutine.
	Status() Health
}

// Health is how a plugin sees itself.
type Health struct {
	Healthy bool   `json:"healthy"`
	Message string `json:"message,omitempty"`
	// Info is whatever a person may want to know, as JSON.
	Info any `json:"info,omitempty"`
}

// Server is a Plugin with HTTP endpoints on the sidecar's server, which looks after who may call. Routes are
// patterns of net/http.ServeMux; it is called before Init. While the plugin does not run they answer 503.
type Server interface {
	Routes() map[string]http.Handler
}

// Readier is a Plugin that the pod's readiness waits for.
type Readier interface {
	Ready() bool
}

// Needer is a Plugin that says, after Init, what it needs of the place that it runs in.
type Needer interface {
	Needs() Needs
}

// Needs of a plugin.
type Needs struct {
	// Signals: processes of other containers have to be seen and signalled.
	Signals bool
	// Access to the API.
	Access []selftest.Need
	// Folders that have to be writable.
	Folders []string
}

// NeedsOf the outputs of results.
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

// Factory makes a new plugin.
type Factory func() Plugin

// Results writes outcomes; *output.Writer implements it.
type Results interface {
	Put(source string, outputs []output.Output, entry result.Entry)
	Drop(source string)
	Flush(ctx context.Context, source string) error
}

// Host is what a plugin is given. Fields that may be nil say so; a plugin that needs one anyway fails in Init.
type Host struct {
	Logger *slog.Logger
	// Pod is the pod that we are in.
	Pod identity.Pod
	// Observed is the pod as it was last seen; nil when it cannot be read.
	Observed func() *corev1.Pod
	// Look reads the pod now, for Observed: after an outage of the API server the watch comes back late. It bounds itself,
	// and is nil without an API server.
	Look func(context.Context) error
	// Changes are told of by a token in the channel, until the function is called.
	Changes func() (<-chan struct{}, func())
	// Own is the name of the container that we are.
	Own string
	// Results take outcomes to the API.
	Results Results
	// API is nil without an API server.
	API *ownpod.Client
	// Processes is nil where /proc cannot be used.
	Processes *signal.FS
	// Tell sends an Event about the pod.
	Tell func(state result.State, reason, message string)
	// Metrics of the plugin; they go when it ends.
	Metrics prometheus.Registerer
}
