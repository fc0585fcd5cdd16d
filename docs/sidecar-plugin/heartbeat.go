// Command sidecar-plugin is refit-sidecar with one more plugin, to show all that a plugin needs: the methods of
// plugin.Plugin, and one line in main. Its plugin, heartbeat, writes the time into a label of the pod now and then.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/result"
	"github.com/refit-project/refit/result/output"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// config is the plugin's part of the configuration file, read as strictly as the rest.
type config struct {
	LabelKey      string `yaml:"labelKey"`
	PeriodSeconds int    `yaml:"periodSeconds"`
}

// Validate is called when the file has been read, by refit-sidecar validate as well.
func (c *config) Validate() error {
	if c.LabelKey == "" || c.PeriodSeconds < 1 {
		return errors.New("labelKey is needed, and periodSeconds of 1 or more")
	}
	return nil
}

type heartbeat struct {
	config *config
	host   plugin.Host
}

func newHeartbeat() plugin.Plugin { return &heartbeat{} }

func (h *heartbeat) Name() string    { return "heartbeat" }
func (h *heartbeat) Version() string { return "v0.1.0" }
func (h *heartbeat) ConfigType() any { return &config{} }

func (h *heartbeat) Init(_ context.Context, c any, host plugin.Host) error {
	own, ok := c.(*config)
	if !ok {
		return fmt.Errorf("configuration of type %T", c)
	}
	h.config, h.host = own, host
	return nil
}

func (h *heartbeat) Start(ctx context.Context) error {
	ticker := time.NewTicker(time.Duration(h.config.PeriodSeconds) * time.Second)
	defer ticker.Stop()
	where := []output.Output{output.Label{Object: output.Pod(h.host.Pod), Key: h.config.LabelKey}}
	for {
		now := time.Now().UTC().Format("2006-01-02T15.04.05")
		h.host.Results.Put(h.Name(), where, result.Entry{State: result.Succeeded, Value: now, Message: now, At: time.Now()})
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (h *heartbeat) Stop(context.Context) error { return nil }

func (h *heartbeat) Status() plugin.Health { return plugin.Health{Healthy: true} }
