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

	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/plugin"
	"github.com/refit-project/refit/sidecarmode/process"
)

// Defaults of the reference implementation, and of Kubernetes where it has none.
const (
	defaultStartDelay = 30
	defaultInterval   = 5
	defaultTimeout    = 10
	maxPhase          = 5 * time.Second
)

// Times can be given for all endpoints and for one.
type Times struct {
	StartDelaySeconds    int `yaml:"startDelaySeconds"`
	ProbeIntervalSeconds int `yaml:"probeIntervalSeconds"`
	SuccessThreshold     int `yaml:"successThreshold"`
	FailureThreshold     int `yaml:"failureThreshold"`
}

// Endpoint is probed by exactly one of url, tcp, grpc, exec, process and file.
type Endpoint struct {
	Times `yaml:",inline"`
	// Name is used in messages and metrics; by default it is what is probed.
	Name    string            `yaml:"name"`
	URL     string            `yaml:"url"`
	Method  string            `yaml:"method"`
	Headers map[string]string `yaml:"headers"`
	// Timeout is in seconds.
	Timeout float64 `yaml:"timeout"`
	// ExpectedStatusCode is 200 by default.
	ExpectedStatusCode int  `yaml:"expectedStatusCode"`
	SkipTLSVerify      bool `yaml:"skipTLSVerify"`
	// ExpectedResult, if given, is what the whole result must be; another one is a failure.
	ExpectedResult string `yaml:"expectedResult"`

	TCP     *TCP            `yaml:"tcp"`
	GRPC    *GRPC           `yaml:"grpc"`
	Exec    *Exec           `yaml:"exec"`
	Process *process.Config `yaml:"process"`
	File    *File           `yaml:"file"`

	// BootOrder is not used: the KEP's examples have it here. The plugin's own is beside its name.
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

// File looks at a file.
type File struct {
	Path          string `yaml:"path"`
	MaxAgeSeconds int    `yaml:"maxAgeSeconds"`
	// Content is a regular expression (RE2).
	Content string `yaml:"content"`
}

// JSONPath takes the result out of a JSON document.
type JSONPath struct {
	// JSONPath is in the syntax of GJSON, "game.players.0" or "game.players.#", or as kubectl has it,
	// "{.game.players[0]}".
	JSONPath string `yaml:"jsonPath"`
	// FieldType and Value, if given, are what the result must be; another one is a failure.
	FieldType string `yaml:"fieldType"`
	Value     any    `yaml:"value"`
}

// Title names the endpoint in messages.
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

// publicURL is a URL without user, password and values of its query, which may be credentials: titles are labels of
// metrics and stand in logs.
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

// Spec is the probe that the endpoint means; times that it does not give itself are those of all.
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
	spec := probe.Spec{Prober: prober, Timing: timing.WithDefaults()}
	return spec, spec.Validate()
}

// ProbeTimeout is the timeout of one probe.
func (e *Endpoint) ProbeTimeout() time.Duration {
	return time.Duration(cmp.Or(e.Timeout, defaultTimeout) * float64(time.Second))
}

// Prober runs the configured kind of probe and compares its result with what is expected.
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
	var faults []error
	add := func(p probe.Prober, err error) {
		made = append(made, p)
		faults = append(faults, err)
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
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(made) != 1 {
		return nil, fmt.Errorf("want exactly one of url, tcp, grpc, exec, process and file, %d are given", len(made))
	}
	return made[0], nil
}
