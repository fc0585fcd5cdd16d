package config_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/refit-project/refit/plugin/config"
)

// object is a part of a JSON Schema.
type object map[string]any

func (o object) at(t *testing.T, keys ...string) object {
	t.Helper()
	for _, key := range keys {
		inner, ok := o[key].(map[string]any)
		if !ok {
			t.Fatalf("no %s in %v", key, o)
		}
		o = inner
	}
	return o
}

func schema(t *testing.T) object {
	t.Helper()
	text, err := json.Marshal(config.Schema(types()))
	if err != nil {
		t.Fatal(err)
	}
	var decoded object
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// A key is accepted in any case of letters, and nothing else is, as in Parse.
func TestSchemaAcceptsTheKeysThatParseDoes(t *testing.T) {
	t.Parallel()
	whole := schema(t)
	if whole["additionalProperties"] != false {
		t.Error("unknown keys are accepted")
	}
	matches := func(key string) bool {
		for pattern := range whole.at(t, "patternProperties") {
			if regexp.MustCompile(pattern).MatchString(key) {
				return true
			}
		}
		return false
	}
	for key, want := range map[string]bool{
		"restartPolicy": true, "restartpolicy": true, "RESTARTPOLICY": true, "<<": true,
		"restartPolicyX": false, "restart.olicy": false, "restart": false, "x": false,
	} {
		if _, err := parse(key + ": Never\n"); key != "<<" && (err == nil) != want {
			t.Errorf("Parse of key %s: %v", key, err)
		}
		if matches(key) != want {
			t.Errorf("key %s: accepted %v, want %v", key, !want, want)
		}
	}
}

// Editors complete the usual spelling, and find the configuration of a plugin by its name.
func TestSchemaOfPlugins(t *testing.T) {
	t.Parallel()
	whole := schema(t)
	plugins := whole.at(t, "properties", "plugins", "items")["anyOf"].([]any)
	var names []string
	for _, plugin := range plugins {
		p := object(plugin.(map[string]any))
		names = append(names, p.at(t, "properties", "name")["const"].(string))
		if required := p["required"].([]any); len(required) != 1 || required[0] != "name" {
			t.Errorf("required %v", required)
		}
		own := p.at(t, "properties", "config", "properties")
		for _, key := range []string{"startDelaySeconds", "endpoints", "fileDir", "bootOrder"} {
			if own[key] == nil {
				t.Errorf("no key %s in the configuration of %s", key, names[len(names)-1])
			}
		}
	}
	if len(names) != 2 || names[0] != "hot_update" || names[1] != "http_probe" {
		t.Errorf("plugins %v", names)
	}
	storage := whole.at(t, "$defs", "config.InKube", "properties")
	for _, key := range []string{"annotationKey", "configMap", "target", "jsonPath", "markerPolicies"} {
		if storage[key] == nil {
			t.Errorf("no key %s in storageConfig", key)
		}
	}
}
