package sidecarmode

import (
	crrinpod "github.com/refit-project/refit/crr/inpod"
	hotupdateinpod "github.com/refit-project/refit/hotupdate/inpod"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
	probeinpod "github.com/refit-project/refit/probe/inpod"
	"github.com/refit-project/refit/probe/inpod/httpprobe"
)

// Builtin returns the plugins of this program. To add one, add a line here or in another program's main.
func Builtin() []plugin.Factory {
	return []plugin.Factory{
		hotupdateinpod.New,
		httpprobe.New,
		probeinpod.New,
		crrinpod.New,
	}
}

// Check reads a configuration file, or a ConfigMap manifest that contains one, as Run would, except for what only a pod can
// know. It returns all errors at once.
func Check(name string, text []byte, factories []plugin.Factory) error {
	types, err := typesOf(factories)
	if err != nil {
		return err
	}
	_, err = config.Parse(name, text, types, config.Unresolved)
	return err
}

// Schema returns the JSON Schema of the configuration file.
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
