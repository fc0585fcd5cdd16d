package sidecarmode

import (
	"github.com/refit-project/refit/sidecarmode/config"
	"github.com/refit-project/refit/sidecarmode/httpprobe"
	"github.com/refit-project/refit/sidecarmode/plugin"
	"github.com/refit-project/refit/sidecarmode/podprobe"
	"github.com/refit-project/refit/sidecarmode/recreate"
	"github.com/refit-project/refit/sidecarmode/update"
)

// Builtin are the plugins of this program. One more is one more line, here or in another program's main.
func Builtin() []plugin.Factory {
	return []plugin.Factory{
		update.New,
		httpprobe.New,
		podprobe.New,
		recreate.New,
	}
}

// Check reads a configuration file, or a ConfigMap manifest with one in it, as Run would, but for what only a
// pod can know. All faults are reported at once.
func Check(name string, text []byte, factories []plugin.Factory) error {
	types, err := typesOf(factories)
	if err != nil {
		return err
	}
	_, err = config.Parse(name, text, types, config.Unresolved)
	return err
}

// Schema of the configuration file, as JSON Schema.
func Schema(factories []plugin.Factory) (map[string]any, error) {
	types, err := typesOf(factories)
	if err != nil {
		return nil, err
	}
	return config.Schema(types), nil
}

func typesOf(factories []plugin.Factory) (config.Types, error) {
	if factories == nil {
		factories = Builtin()
	}
	manager, err := plugin.NewManager(plugin.Config{Factories: factories})
	if err != nil {
		return nil, err
	}
	return manager.Types(), nil
}
