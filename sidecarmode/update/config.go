package update

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/plugin"
	"github.com/refit-project/refit/sidecarmode/update/download"
	"github.com/refit-project/refit/sidecarmode/update/steps"
	"github.com/refit-project/refit/sidecarmode/update/trigger"
)

// DefaultDir is the reference implementation's folder.
const DefaultDir = "/app/downloads"

// Config of the plugin.
type Config struct {
	// FileDir is the folder shared with the program; DefaultDir by default.
	FileDir string `yaml:"fileDir"`
	// LoadPatchType is how the program is told, as in the KEP; Reload is for several steps.
	LoadPatchType string         `yaml:"loadPatchType" enum:"signal,request,none"`
	Signal        *steps.Signal  `yaml:"signal"`
	Request       *steps.Request `yaml:"request"`
	Reload        []steps.Action `yaml:"reload"`
	// Precheck rejects a candidate before anything changes.
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

// Restore says what a new pod of the workload begins with.
type Restore struct {
	// ConfigMap in the pod's namespace with the record; sidecar-result by default, "off" for none.
	ConfigMap string `yaml:"configMap"`
	// WaitSeconds bounds the wait for the API server, for sources, those of triggers among them, and for the program's process,
	// and so how long they can delay readiness; 300 by default. A restore may use nine tenths of it if there are triggers.
	WaitSeconds float64 `yaml:"waitSeconds"`
	// StoreQueries permits URLs with a query in the ConfigMap and in the folder. Without it they are not restored, since a
	// query may hold credentials. URLs with user or password are never stored.
	StoreQueries bool `yaml:"storeQueries"`
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
		faults = append(faults, errors.New("loadPatchType or reload is needed; loadPatchType: none for a program that watches its files"))
	}
	for i, t := range c.Triggers {
		if err := t.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("triggers[%d]: %w", i, err))
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

// deadlines are until when a restore may take, and the restore and the triggers together.
func (c *Config) deadlines(now time.Time) (restored, ready time.Time) {
	ready = now.Add(c.wait())
	if len(c.Triggers) == 0 {
		return ready, ready
	}
	return now.Add(c.wait() * 9 / 10), ready
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// updater is the configuration of the room hotupdate.
func (c *Config) updater(host plugin.Host) (hotupdate.Config, error) {
	u := hotupdate.Config{Dir: c.dir(), Keep: c.KeepRevisions, StoreQueries: c.Restore.StoreQueries, Limits: payload.Limits{MaxFiles: c.MaxFiles}}
	var faults []error
	var err error
	u.Fetch, err = c.Fetch.Fetch()
	faults = append(faults, err)
	u.Keys, err = c.Fetch.Keys()
	faults = append(faults, err)
	chain, err := c.chain()
	faults = append(faults, err)
	u.Reload, err = steps.Actions("reload", chain, host)
	faults = append(faults, err)
	u.Precheck, err = steps.Actions("precheck", c.Precheck, host)
	faults = append(faults, err)
	u.Verify, err = c.Verify.Verification(host)
	faults = append(faults, err)
	return u, errors.Join(faults...)
}

// chain is what loadPatchType means, and reload.
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
