// Command sidecar-plugin is refit-sidecar with one more plugin, to show all that a plugin needs: the methods of
// plugin.Plugin, and one line in main. Its plugin, heartbeat, stores the time now and then, where its storageConfig says.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/plugin/config"
)

// settings are the plugin's part of the configuration file, read as strictly as the rest.
type settings struct {
	PeriodSeconds int `yaml:"periodSeconds"`
	// StorageConfig has the form that it has for every plugin: one storage, or a list.
	StorageConfig []config.Storage `yaml:"storageConfig" single:"true"`
}

// Validate is called when the file has been read, by refit-sidecar validate as well.
func (s *settings) Validate() error {
	if s.PeriodSeconds < 1 || len(s.StorageConfig) == 0 {
		return errors.New("storageConfig is needed, and periodSeconds of 1 or more")
	}
	return config.CheckStorage(s.StorageConfig)
}

type heartbeat struct {
	period  time.Duration
	outputs []output.Output
	results plugin.Results
}

func newHeartbeat() plugin.Plugin { return &heartbeat{} }

func (h *heartbeat) Name() string    { return "heartbeat" }
func (h *heartbeat) Version() string { return "v0.1.0" }
func (h *heartbeat) ConfigType() any { return &settings{} }

func (h *heartbeat) Init(_ context.Context, c any, host plugin.Host) error {
	own, ok := c.(*settings)
	if !ok {
		return fmt.Errorf("configuration of type %T", c)
	}
	h.period, h.results = time.Duration(own.PeriodSeconds)*time.Second, host.Results
	var err error
	h.outputs, err = config.Outputs(own.StorageConfig, config.NewWhere(host.Observed(), host.Pod, "Heartbeat"))
	return err
}

// Start writes nothing itself: results are written when they have changed, again after a failure, and not too often.
func (h *heartbeat) Start(ctx context.Context) error {
	defer h.results.Drop(h.Name())
	ticker := time.NewTicker(h.period)
	defer ticker.Stop()
	for {
		now := time.Now().UTC().Format("2006-01-02T15.04.05") // as a label may have it
		h.results.Put(h.Name(), h.outputs, result.Entry{State: result.Succeeded, Value: now, Message: now, At: time.Now()})
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (h *heartbeat) Stop(context.Context) error { return nil }

func (h *heartbeat) Status() plugin.Health { return plugin.Health{Healthy: true} }

// Needs has the self-test of the sidecar look whether the Role allows what is stored.
func (h *heartbeat) Needs() plugin.Needs { return plugin.Needs{Access: plugin.NeedsOf(h.outputs)} }
