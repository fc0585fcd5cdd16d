package sidecarmode

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/refit-project/refit/sidecarmode/plugin"
)

// DefaultConfigFiles are looked for in this order; the second is where the reference's manuals mount theirs.
func DefaultConfigFiles() []string {
	return []string{"/opt/kidecar/config.yaml", "/opt/sidecar/config.yaml"}
}

// Config is what the program is told from outside; the rest is in its configuration file.
type Config struct {
	// File is the configuration file; empty: the first of DefaultConfigFiles that exists.
	File string
	// Namespace and Pod are where we are, Container is our own name there.
	Namespace, Pod, Container string
	// UID of the pod, from fieldRef metadata.uid; empty reads it from the API, which then has to be there at the start.
	UID string
	// API is the connection to the API server; nil is that of the pod's service account.
	API *rest.Config
	// Grace is how long an end may take; less than the pod's terminationGracePeriodSeconds.
	Grace time.Duration
	// Factories of the plugins that can be configured; nil is Builtin.
	Factories []plugin.Factory
	Version   string
	Logger    *slog.Logger
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var faults []error
	if c.Namespace == "" {
		faults = append(faults, errors.New("namespace is not known: set POD_NAMESPACE from fieldRef metadata.namespace"))
	}
	if c.Pod == "" {
		faults = append(faults, errors.New("pod is not known: set POD_NAME from fieldRef metadata.name"))
	}
	if c.Grace <= 0 {
		faults = append(faults, fmt.Errorf("grace %s: want more than 0", c.Grace))
	}
	if c.Logger == nil {
		faults = append(faults, errors.New("no logger"))
	}
	return errors.Join(faults...)
}

// file is the configuration file to read.
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
