package update

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/httpprobe"
	"github.com/refit-project/refit/sidecarmode/plugin"
	"github.com/refit-project/refit/sidecarmode/process"
	"github.com/refit-project/refit/signal"
)

// DefaultDir is the reference implementation's folder.
const DefaultDir = "/app/downloads"

// Config of the plugin.
type Config struct {
	// FileDir is the folder shared with the program; DefaultDir by default.
	FileDir string `yaml:"fileDir"`
	// LoadPatchType is the one way to tell the program, as in the KEP; Reload is for several.
	LoadPatchType string   `yaml:"loadPatchType" enum:"signal,request,none"`
	Signal        *Signal  `yaml:"signal"`
	Request       *Request `yaml:"request"`
	Reload        []Action `yaml:"reload"`
	// Precheck judges a candidate before anything changes.
	Precheck []Action `yaml:"precheck"`
	Verify   *Verify  `yaml:"verify"`

	Fetch         Fetch `yaml:"fetch"`
	MaxFiles      int   `yaml:"maxFiles"`
	KeepRevisions int   `yaml:"keepRevisions"`

	Restore  Restore   `yaml:"restore"`
	Triggers []Trigger `yaml:"triggers"`

	StorageConfig []config.Storage `yaml:"storageConfig" single:"true"`
	// DetailAnnotationKey is an annotation of the pod for the outcome as JSON.
	DetailAnnotationKey string `yaml:"detailAnnotationKey"`
}

// Signal says which signal goes to whom.
type Signal struct {
	process.Config `yaml:",inline"`
	SignalName     string `yaml:"signalName"`
}

// Action is one step of a chain: exactly one of signal, request, exec and touch.
type Action struct {
	Name    string   `yaml:"name"`
	Signal  *Signal  `yaml:"signal"`
	Request *Request `yaml:"request"`
	// Exec is run in the sidecar's container; {path}, {dir} and {version} stand for the candidate's folder, the
	// shared folder and the version.
	Exec []string `yaml:"exec"`
	// Touch sets the times of a file of the folder.
	Touch          string  `yaml:"touch"`
	TimeoutSeconds float64 `yaml:"timeoutSeconds"`
	Attempts       int     `yaml:"attempts"`
	PauseSeconds   float64 `yaml:"pauseSeconds"`
}

// Verify says when the program is well with the new files; else they are rolled back.
type Verify struct {
	// Checks are endpoints as http_probe has them, where {version} stands for the version.
	Checks          []httpprobe.Endpoint `yaml:"checks"`
	WithinSeconds   float64              `yaml:"withinSeconds"`
	ForSeconds      float64              `yaml:"forSeconds"`
	IntervalSeconds float64              `yaml:"intervalSeconds"`
}

// Restore says what a new pod of the workload begins with.
type Restore struct {
	// ConfigMap in the pod's namespace that remembers; sidecar-result by default, "off" for none.
	ConfigMap string `yaml:"configMap"`
	// WaitSeconds bounds the wait for the source and for the program's process; 300 by default.
	WaitSeconds float64 `yaml:"waitSeconds"`
}

// Trigger is a source of updates besides HTTP: exactly one of configMap, secret and directory.
type Trigger struct {
	ConfigMap string `yaml:"configMap"`
	Secret    string `yaml:"secret"`
	// Directory is a mounted volume of files.
	Directory string `yaml:"directory"`
	// Files maps keys to paths below fileDir; by default every key is a file.
	Files map[string]string `yaml:"files"`
}

const (
	defaultConfigMap = "sidecar-result"
	defaultWait      = 300
	off              = "off"
)

// Validate reports all faults at once.
func (c *Config) Validate() error {
	updater, err := c.updater(plugin.Host{})
	faults := []error{err, updater.Validate()}
	if c.LoadPatchType == "" && len(c.Reload) == 0 {
		faults = append(faults, errors.New("loadPatchType or reload is needed; loadPatchType: none for a program that looks by itself"))
	}
	for i, t := range c.Triggers {
		given := 0
		for _, s := range []string{t.ConfigMap, t.Secret, t.Directory} {
			if s != "" {
				given++
			}
		}
		if given != 1 {
			faults = append(faults, fmt.Errorf("triggers[%d]: want exactly one of configMap, secret and directory", i))
		}
	}
	if len(c.StorageConfig) > 0 {
		faults = append(faults, config.CheckStorage(c.StorageConfig))
	}
	if c.DetailAnnotationKey != "" {
		faults = append(faults, config.CheckStorage([]config.Storage{{InKube: &config.InKube{AnnotationKey: c.DetailAnnotationKey}}}))
	}
	return errors.Join(faults...)
}

func (c *Config) dir() string { return cmp.Or(c.FileDir, DefaultDir) }

func (c *Config) configMap() string {
	name := cmp.Or(c.Restore.ConfigMap, defaultConfigMap)
	if name == off {
		return ""
	}
	return name
}

func (c *Config) wait() time.Duration {
	return seconds(cmp.Or(c.Restore.WaitSeconds, defaultWait))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// updater is the configuration of the room hotupdate.
func (c *Config) updater(host plugin.Host) (hotupdate.Config, error) {
	u := hotupdate.Config{Dir: c.dir(), Keep: c.KeepRevisions, Limits: hotupdate.Limits{MaxFiles: c.MaxFiles}}
	var faults []error
	var err error
	u.Fetch, err = c.Fetch.config()
	faults = append(faults, err)
	u.Keys, err = c.Fetch.keys()
	faults = append(faults, err)
	chain, err := c.chain()
	faults = append(faults, err)
	u.Reload, err = actions("reload", chain, host)
	faults = append(faults, err)
	u.Precheck, err = actions("precheck", c.Precheck, host)
	faults = append(faults, err)
	if c.Verify != nil {
		u.Verify, err = c.Verify.config(host)
		faults = append(faults, err)
	}
	return u, errors.Join(faults...)
}

// chain is what loadPatchType means, and reload.
func (c *Config) chain() ([]Action, error) {
	switch {
	case c.LoadPatchType == "signal" && c.Signal == nil:
		return nil, errors.New("loadPatchType signal needs signal")
	case c.LoadPatchType == "signal":
		return append([]Action{{Signal: c.Signal}}, c.Reload...), nil
	case c.LoadPatchType == "request" && c.Request == nil:
		return nil, errors.New("loadPatchType request needs request")
	case c.LoadPatchType == "request":
		return append([]Action{{Request: c.Request}}, c.Reload...), nil
	}
	return c.Reload, nil
}

func actions(where string, all []Action, host plugin.Host) ([]hotupdate.Action, error) {
	made := make([]hotupdate.Action, 0, len(all))
	var faults []error
	for i, a := range all {
		step, name, err := a.step(host)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s[%d]: %w", where, i, err))
		}
		made = append(made, hotupdate.Action{
			Name: cmp.Or(a.Name, name), Step: step, Timeout: seconds(a.TimeoutSeconds), Attempts: a.Attempts, Pause: seconds(a.PauseSeconds),
		})
	}
	return made, errors.Join(faults...)
}

func (a Action) step(host plugin.Host) (step hotupdate.Step, name string, err error) {
	given := 0
	if a.Signal != nil {
		given++
		sig, parseErr := signal.Parse(a.Signal.SignalName)
		err = errors.Join(err, parseErr, a.Signal.Validate())
		finder := process.Finder{Config: a.Signal.Config, FS: host.Processes, Observed: host.Observed}
		step, name = hotupdate.Signal{Signaler: signaler{finder, sig}}, "signal "+a.Signal.SignalName
	}
	if a.Request != nil {
		given++
		call, callErr := a.Request.call()
		err = errors.Join(err, callErr)
		step, name = call, "request "+call.Method+" "+hostOf(call.URL)
	}
	if len(a.Exec) > 0 {
		given++
		step, name = hotupdate.Command{Execer: execer{}, Command: a.Exec}, "exec "+a.Exec[0]
	}
	if a.Touch != "" {
		given++
		step, name = hotupdate.Touch{Name: a.Touch}, "touch "+a.Touch
	}
	if given != 1 {
		err = errors.Join(err, fmt.Errorf("want exactly one of signal, request, exec and touch, %d are given", given))
	}
	return step, name, err
}
