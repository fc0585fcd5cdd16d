package main

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/sidecarmode"
)

// The plugin's configuration is checked with the rest of the file, and its own rule is heard.
func TestThePluginIsPartOfTheSidecar(t *testing.T) {
	t.Parallel()
	factories := append(sidecarmode.Builtin(), newHeartbeat)
	check := func(config string) error {
		return sidecarmode.Check("config.yaml", []byte("plugins:\n- name: heartbeat\n  config: {"+config+"}\n"), factories)
	}
	if err := check("labelKey: beat, periodSeconds: 10"); err != nil {
		t.Error(err)
	}
	for config, want := range map[string]string{
		"labelKey: beat": "periodSeconds of 1 or more", "labelKye: beat": `did you mean "labelKey"?`,
	} {
		if err := check(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
