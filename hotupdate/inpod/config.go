package inpod

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/download"
	"github.com/refit-project/refit/hotupdate/inpod/steps"
	"github.com/refit-project/refit/hotupdate/inpod/trigger"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
)

// DefaultDir is the folder of the reference implementation.
const DefaultDir = "/app/downloads"

// Config is the configuration of the plugin.
type Config struct {
	// FileDir is the folder shared with the program; DefaultDir by default.
	FileDir string `yaml:"fileDir"`
	// LoadPatchType is how the program is reloaded, as in the KEP; Reload is for several steps.
	LoadPatchType string         `yaml:"loadPatchType" enum:"signal,request,none"`
	Signal        *steps.Signal  `yaml:"signal"`
	Request       *steps.Request `yaml:"request"`
	Reload        []steps.Action `yaml:"reload"`
	// Precheck rejects a candidate before anything is changed.
	Precheck []steps.Action `yaml:"precheck"`
	Verify   *steps.Verify  `yaml:"verify"`

	Fetch         download.Config `yaml:"fetch"`
	MaxFiles      int             `yaml:"maxFiles"`
	KeepRevisions int             `yaml:"keepRevisions"`

	Restore  Restore          `yaml:"restore"`
	Triggers []trigger.Config `yaml:"triggers"`

	StorageConfig []config.Storage `yaml:"storageConfig" single:"true"`
	// DetailAnnotationKey is an annotation of the pod for the outcome as JSON.
	DetailAnnotationKey string `yaml:"detailAnnotationKey"`
}

// Restore says which files a new pod of the workload starts with.
type Restore struct {
	// ConfigMap in the pod's namespace with the record; sidecar-result by default, "off" for none.
	ConfigMap string `yaml:"configMap"`
	// WaitSeconds bounds the wait for the API server, for sources including the triggers, and for the program's
	// process. It also bounds how long they can delay readiness. 300 by default. A restore may use nine tenths of it if
	// there are triggers.
	WaitSeconds float64 `yaml:"waitSeconds"`
	// StoreQueries allows URLs with a query in the ConfigMap and in the folder. Without it they are not restored, since a
	// query may contain credentials. URLs with user or password are never stored.
	StoreQueries bool `yaml:"storeQueries"`
}

const (
	defaultConfigMap = "sidecar-result"
	defaultWait      = 300
	off              = "off"
)

// Validate returns all errors at once.
func (c *Config) Validate() error {
	updater, err := c.updater(plugin.Host{})
	errs := []error{err, c.ownFields(&updater), updater.Validate()}
	if c.LoadPatchType == "" && len(c.Reload) == 0 {
		errs = append(errs, errors.New("loadPatchType or reload is needed; loadPatchType: none for a program that watches its files"))
	}
	for i, t := range c.Triggers {
		if err := t.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("triggers[%d]: %w", i, err))
		}
	}
	if len(c.StorageConfig) > 0 {
		errs = append(errs, config.CheckStorage(c.StorageConfig))
	}
	if c.DetailAnnotationKey != "" {
		errs = append(errs, config.CheckStorage([]config.Storage{{InKube: &config.InKube{AnnotationKey: c.DetailAnnotationKey}}}))
	}
	return errors.Join(errs...)
}

// ownFields checks fields that have another name in the configuration of the updater, and leaves the default there for one
// with an error, so that it is reported once and by its own name.
func (c *Config) ownFields(updater *hotupdate.Config) error {
	var errs []error
	if !filepath.IsAbs(c.dir()) {
		errs, updater.Dir = append(errs, fmt.Errorf("fileDir %q: not an absolute path", c.FileDir)), DefaultDir
	}
	if c.KeepRevisions < 0 || c.KeepRevisions == 1 {
		errs, updater.Keep = append(errs, fmt.Errorf("keepRevisions %d: want 2 or more, or 0 for the default", c.KeepRevisions)), 0
	}
	if c.MaxFiles < 0 {
		errs, updater.Limits.MaxFiles = append(errs, fmt.Errorf("maxFiles %d: negative", c.MaxFiles)), 0
	}
	return errors.Join(errs...)
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

// deadlines returns the deadline of the restore, and the deadline of the restore and the triggers together.
func (c *Config) deadlines(now time.Time) (restored, ready time.Time) {
	ready = now.Add(c.wait())
	if len(c.Triggers) == 0 {
		return ready, ready
	}
	return now.Add(c.wait() * 9 / 10), ready
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// updater returns the configuration of the package hotupdate.
func (c *Config) updater(host plugin.Host) (hotupdate.Config, error) {
	u := hotupdate.Config{Dir: c.dir(), Keep: c.KeepRevisions, StoreQueries: c.Restore.StoreQueries, Limits: payload.Limits{MaxFiles: c.MaxFiles}}
	var errs []error
	var err error
	u.Fetch, err = c.Fetch.Fetch()
	errs = append(errs, err)
	u.Keys, err = c.Fetch.Keys()
	errs = append(errs, err)
	chain, err := c.chain()
	errs = append(errs, err)
	if len(chain) > len(c.Reload) { // the step of loadPatchType, which has no place in the list
		step, err := chain[0].Action(c.LoadPatchType, host)
		u.Reload, errs = append(u.Reload, step), append(errs, err)
	}
	reload, err := steps.Actions("reload", c.Reload, host)
	u.Reload, errs = append(u.Reload, reload...), append(errs, err)
	u.Precheck, err = steps.Actions("precheck", c.Precheck, host)
	errs = append(errs, err)
	u.Verify, err = c.Verify.Verification(host)
	errs = append(errs, err)
	return u, errors.Join(errs...)
}

// chain returns the reload steps of loadPatchType or reload.
func (c *Config) chain() ([]steps.Action, error) {
	switch {
	case c.LoadPatchType == "signal" && c.Signal == nil:
		return nil, errors.New("loadPatchType signal needs signal")
	case c.LoadPatchType == "signal":
		return append([]steps.Action{{Signal: c.Signal}}, c.Reload...), nil
	case c.LoadPatchType == "request" && c.Request == nil:
		return nil, errors.New("loadPatchType request needs request")
	case c.LoadPatchType == "request":
		return append([]steps.Action{{Request: c.Request}}, c.Reload...), nil
	}
	return c.Reload, nil
}
