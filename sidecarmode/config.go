package sidecarmode

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/plugin"
)

// DefaultConfigFiles returns the files to look for, in this order. The second one is the path in the reference
// implementation's manuals.
func DefaultConfigFiles() []string {
	return []string{"/opt/kidecar/config.yaml", "/opt/sidecar/config.yaml"}
}

// Config has the settings from the command line and the environment; the others are in the configuration file.
type Config struct {
	// File is the configuration file; empty uses the first of DefaultConfigFiles that exists.
	File string
	// Namespace and Pod identify our pod, and Container our container in it.
	Namespace, Pod, Container string
	// UID of the pod, from fieldRef metadata.uid; empty reads it from the API, which then has to be available at the start.
	UID string
	// API is the connection to the API server; nil uses the pod's service account.
	API *rest.Config
	// Grace bounds the shutdown; less than the pod's terminationGracePeriodSeconds.
	Grace time.Duration
	// Factories of the plugins that can be configured; nil means Builtin.
	Factories []plugin.Factory
	Version   string
	Logger    *slog.Logger
}

// Validate returns all errors at once.
func (c Config) Validate() error {
	var errs []error
	if c.Namespace == "" {
		errs = append(errs, errors.New("namespace is not known: set POD_NAMESPACE from fieldRef metadata.namespace"))
	}
	if c.Pod == "" {
		errs = append(errs, errors.New("pod is not known: set POD_NAME from fieldRef metadata.name"))
	}
	if c.Grace <= 0 {
		errs = append(errs, fmt.Errorf("grace %s: want more than 0", c.Grace))
	}
	if c.Logger == nil {
		errs = append(errs, errors.New("no logger"))
	}
	return errors.Join(errs...)
}

// file returns the configuration file to read.
func (c Config) file() string {
	if c.File != "" {
		return c.File
	}
	files := DefaultConfigFiles()
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			return f
		}
	}
	return files[0]
}
