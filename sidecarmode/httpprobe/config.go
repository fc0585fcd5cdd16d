package httpprobe

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/endpoint"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// Config of the plugin.
type Config struct {
	endpoint.Times `yaml:",inline"`
	Endpoints      []endpoint.Endpoint `yaml:"endpoints"`
}

// Validate reports all faults at once.
func (c *Config) Validate() error {
	var faults []error
	if len(c.Endpoints) == 0 {
		faults = append(faults, errors.New("endpoints: none is given"))
	}
	seen := map[string]bool{}
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		fault := func(err error) {
			if err != nil {
				faults = append(faults, fmt.Errorf("endpoints[%d]: %w", i, err))
			}
		}
		_, err := e.Spec(c.Times, plugin.Host{})
		fault(err)
		if len(e.StorageConfig) > 0 {
			fault(config.CheckStorage(e.StorageConfig))
		}
		if name := e.Title(); seen[name] {
			fault(fmt.Errorf("%q is there already: give it a name of its own", name))
		} else {
			seen[name] = true
		}
	}
	return errors.Join(faults...)
}
