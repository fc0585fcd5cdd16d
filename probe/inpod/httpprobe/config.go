package httpprobe

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	"github.com/refit-project/refit/probe/endpoint"
)

// Config is the configuration of the plugin.
type Config struct {
	endpoint.Times `yaml:",inline"`
	Endpoints      []endpoint.Endpoint `yaml:"endpoints"`
}

// Validate returns all errors at once.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Endpoints) == 0 {
		errs = append(errs, errors.New("endpoints: none is given"))
	}
	seen := map[string]bool{}
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		addError := func(err error) {
			if err != nil {
				errs = append(errs, fmt.Errorf("endpoints[%d]: %w", i, err))
			}
		}
		_, err := e.Spec(c.Times, plugin.Host{})
		addError(err)
		if len(e.StorageConfig) > 0 {
			addError(config.CheckStorage(e.StorageConfig))
		}
		if name := e.Title(); seen[name] {
			addError(fmt.Errorf("%q is there already: give it a name of its own", name))
		} else {
			seen[name] = true
		}
	}
	return errors.Join(errs...)
}
