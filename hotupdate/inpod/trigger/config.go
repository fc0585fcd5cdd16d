// Package trigger turns changes of ConfigMaps, Secrets and mounted volumes into requests for a hot update.
//
// It contains: watching, reading, and repeating a request that failed. How a request is carried out must stay out.
package trigger

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/internal/kube/ownpod"
)

// Config is a source of updates other than HTTP: exactly one of configMap, secret and directory.
type Config struct {
	ConfigMap string `yaml:"configMap"`
	Secret    string `yaml:"secret"`
	// Directory is a mounted volume of files.
	Directory string `yaml:"directory"`
	// Files maps keys to paths below fileDir; by default every key is a file.
	Files map[string]string `yaml:"files"`
}

// Validate returns all errors at once.
func (c Config) Validate() error {
	given := 0
	for _, s := range []string{c.ConfigMap, c.Secret, c.Directory} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return errors.New("want exactly one of configMap, secret and directory")
	}
	paths := map[string]bool{}
	for key, path := range c.Files {
		if paths[path] {
			return fmt.Errorf("files: %s: another key has the path %q already", key, path)
		}
		paths[path] = true
	}
	return nil
}

// Reference returns the name of the object; its Name is empty for a directory.
func (c Config) Reference(namespace string) ownpod.Reference {
	if c.Secret != "" {
		return ownpod.Reference{Version: "v1", Resource: "secrets", Namespace: namespace, Name: c.Secret}
	}
	return ownpod.Reference{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: c.ConfigMap}
}

// Name identifies a trigger, in messages and in the state of the updater, which has what it delivered last.
func (c Config) Name(namespace string) string {
	if c.Directory != "" {
		return c.Directory
	}
	return c.Reference(namespace).String()
}
