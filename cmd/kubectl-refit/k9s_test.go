package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The commands of the plugins for k9s have to be ones that the program has. k9s replaces the variables.
func TestCommandsOfK9sParse(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../deploy/k9s/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Plugins map[string]struct {
			Command            string
			Args               []string
			Confirm, Dangerous bool
		}
	}
	if err := yaml.UnmarshalStrict(content, &struct {
		Plugins map[string]any
	}{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Plugins) < 5 {
		t.Fatalf("%d plugins", len(file.Plugins))
	}
	variable := regexp.MustCompile(`"?\$\w+"?`)
	for name, plugin := range file.Plugins {
		args := plugin.Args
		if plugin.Command == "sh" {
			command, _, _ := strings.Cut(args[1], " |")
			args = strings.Fields(command)[1:]
		}
		for i := range args {
			args[i] = variable.ReplaceAllString(args[i], "x")
		}
		if args[0] != "refit" {
			t.Fatalf("%s: %q", name, args)
		}
		if err := parse(args[1:]); err != nil {
			t.Errorf("%s: %q: %v", name, args, err)
		}
		if changes := args[1] == "restart" || args[1] == "rollout"; changes != plugin.Confirm || changes != plugin.Dangerous {
			t.Errorf("%s changes something: %t; confirm %t, dangerous %t", name, changes, plugin.Confirm, plugin.Dangerous)
		}
	}
}
