package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/probe"
)

// Defaults of the reference implementation, or of Kubernetes if it has none.
const (
	defaultStartDelay = 30
	defaultInterval   = 5
	defaultTimeout    = 10
	maxPhase          = 5 * time.Second
)

// Times can be set for all endpoints and for one endpoint.
type Times struct {
	StartDelaySeconds    int `yaml:"startDelaySeconds"`
	ProbeIntervalSeconds int `yaml:"probeIntervalSeconds"`
	SuccessThreshold     int `yaml:"successThreshold"`
	FailureThreshold     int `yaml:"failureThreshold"`
}

// Endpoint is probed through exactly one of url, tcp, grpc, exec, process and file.
type Endpoint struct {
	Times `yaml:",inline"`
	// Name is used in messages and metrics; the default is the probed address, command, process or file.
	Name    string            `yaml:"name"`
	URL     string            `yaml:"url"`
	Method  string            `yaml:"method"`
	Headers map[string]string `yaml:"headers"`
	// Timeout is in seconds.
	Timeout float64 `yaml:"timeout"`
	// ExpectedStatusCode is 200 by default.
	ExpectedStatusCode int  `yaml:"expectedStatusCode"`
	SkipTLSVerify      bool `yaml:"skipTLSVerify"`
	// ExpectedResult is what the whole result must be, if it is set. Another result is a failure.
	ExpectedResult string `yaml:"expectedResult"`

	TCP     *TCP            `yaml:"tcp"`
	GRPC    *GRPC           `yaml:"grpc"`
	Exec    *Exec           `yaml:"exec"`
	Process *process.Config `yaml:"process"`
	File    *File           `yaml:"file"`

	// BootOrder is ignored. The KEP's examples have it here; the plugin's own bootOrder is beside its name.
	BootOrder int `yaml:"bootOrder"`

	JSONPathConfig *JSONPath        `yaml:"jsonPathConfig"`
	StorageConfig  []config.Storage `yaml:"storageConfig" single:"true"`
}

// TCP connects to "host:port".
type TCP struct {
	Address string `yaml:"address"`
}

// GRPC calls the health service at "host:port".
type GRPC struct {
	Address string `yaml:"address"`
	Service string `yaml:"service"`
}

// Exec runs a command in the sidecar's own container.
type Exec struct {
	Command []string `yaml:"command"`
}

// File checks a file.
type File struct {
	Path          string `yaml:"path"`
	MaxAgeSeconds int    `yaml:"maxAgeSeconds"`
	// Content is a regular expression (RE2).
	Content string `yaml:"content"`
}

// JSONPath extracts the result from a JSON document.
type JSONPath struct {
	// JSONPath is in the syntax of GJSON, for example "game.players.0" or "game.players.#", or in the syntax of
	// kubectl, for example "{.game.players[0]}".
	JSONPath string `yaml:"jsonPath"`
	// FieldType is the type that the result must have, if it is set. Another type is a failure.
	FieldType string `yaml:"fieldType"`
	// Value is what the result must be, if it is set. Another value is a failure.
	Value any `yaml:"value"`
}

// Title returns the name of the endpoint for messages.
func (e *Endpoint) Title() string {
	switch {
	case e.Name != "":
		return e.Name
	case e.URL != "":
		return publicURL(e.URL)
	case e.TCP != nil:
		return "tcp " + e.TCP.Address
	case e.GRPC != nil:
		return "grpc " + e.GRPC.Address + "/" + e.GRPC.Service
	case e.File != nil:
		return "file " + e.File.Path
	case e.Exec != nil:
		return fmt.Sprint("exec ", e.Exec.Command)
	}
	return "process"
}

// publicURL returns the URL without user, password and query values. These may be credentials, and titles are used as
// labels of metrics and in logs.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "url"
	}
	query := u.Query()
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if len(query) == 0 {
		return u.String()
	}
	return u.String() + "?" + strings.Join(slices.Sorted(maps.Keys(query)), "&")
}

// Spec returns the probe of the endpoint. Times that the endpoint does not set are taken from all.
func (e *Endpoint) Spec(all Times, host plugin.Host) (probe.Spec, error) {
	prober, err := e.Prober(host)
	if err != nil {
		return probe.Spec{}, err
	}
	seconds := func(own, of, otherwise int) time.Duration {
		n := cmp.Or(own, of)
		if n <= 0 {
			n = otherwise
		}
		return time.Duration(n) * time.Second
	}
	timing := probe.Timing{
		StartDelay:       seconds(e.StartDelaySeconds, all.StartDelaySeconds, defaultStartDelay),
		Period:           seconds(e.ProbeIntervalSeconds, all.ProbeIntervalSeconds, defaultInterval),
		Timeout:          e.ProbeTimeout(),
		SuccessThreshold: cmp.Or(e.SuccessThreshold, all.SuccessThreshold),
		FailureThreshold: cmp.Or(e.FailureThreshold, all.FailureThreshold),
	}
	timing.Jitter = min(timing.Period, maxPhase)
	spec := probe.Spec{Prober: prober, Timing: timing.WithDefaults(), Guard: host.Guard, Subject: guard.Named(guard.Object{Kind: "Endpoint", Name: e.Title()})}
	return spec, spec.Validate()
}

// ProbeTimeout returns the timeout of one probe.
func (e *Endpoint) ProbeTimeout() time.Duration {
	return time.Duration(cmp.Or(e.Timeout, defaultTimeout) * float64(time.Second))
}

// Prober returns a prober of the configured kind, which also compares the result with the expected one.
func (e *Endpoint) Prober(host plugin.Host) (probe.Prober, error) {
	prober, err := e.kind(host)
	if err != nil {
		return nil, err
	}
	if p := e.JSONPathConfig; p != nil && (p.FieldType != "" || p.Value != nil) {
		prober = expecting{prober: prober, fieldType: string(config.TypeOfField(p.FieldType)), value: p.Value}
	}
	if e.ExpectedResult != "" {
		prober = expecting{prober: prober, value: e.ExpectedResult}
	}
	return prober, nil
}

func (e *Endpoint) kind(host plugin.Host) (probe.Prober, error) {
	path := ""
	if e.JSONPathConfig != nil {
		path = e.JSONPathConfig.JSONPath
		if err := probe.CheckJSONPath(path); err != nil {
			return nil, fmt.Errorf("jsonPathConfig: %w", err)
		}
	}
	var made []probe.Prober
	var errs []error
	add := func(p probe.Prober, err error) {
		made = append(made, p)
		errs = append(errs, err)
	}
	if e.URL != "" {
		header := http.Header{}
		for name, value := range e.Headers {
			header.Add(name, value)
		}
		add(probe.NewHTTP(probe.HTTPConfig{
			URL: e.URL, Method: e.Method, Header: header, JSONPath: path, SkipTLSVerify: e.SkipTLSVerify,
			ExpectedStatus: cmp.Or(e.ExpectedStatusCode, http.StatusOK),
		}))
	}
	if e.TCP != nil {
		add(probe.TCP{Address: e.TCP.Address}, nil)
	}
	if e.GRPC != nil {
		add(&probe.GRPC{Address: e.GRPC.Address, Service: e.GRPC.Service}, nil)
	}
	if e.Exec != nil {
		var err error
		if len(e.Exec.Command) == 0 {
			err = errors.New("exec: no command")
		}
		add(probe.Exec{Execer: probe.Local{}, Command: e.Exec.Command, JSONPath: path}, err)
	}
	if e.Process != nil {
		add(probe.Process{Counter: process.Finder{Config: *e.Process, FS: host.Processes, Observed: host.Observed}}, e.Process.Validate())
	}
	if e.File != nil {
		dir, name := filepath.Split(filepath.Clean(e.File.Path))
		add(probe.NewFile(probe.FileConfig{
			Dir: dir, Name: name, MaxAge: time.Duration(e.File.MaxAgeSeconds) * time.Second, Content: e.File.Content, JSONPath: path,
		}))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(made) != 1 {
		return nil, fmt.Errorf("want exactly one of url, tcp, grpc, exec, process and file, %d are given", len(made))
	}
	return made[0], nil
}
