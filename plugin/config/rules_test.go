package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/plugin/config"
)

// faultsOf are the messages of an error of Parse, one for each fault, without lines of the file.
func faultsOf(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(config.WithoutText(err).Error(), "\n")
}

// Every field of the file that has a rule, with a value that keeps it and values that do not.
func TestRulesOfTheFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		good []string
		bad  map[string]string
	}{
		"plugins": {
			[]string{"plugins: []", "plugins:", "plugins:\n- name: http_probe\n- name: hot_update"},
			map[string]string{
				"plugins:\n- name: x":         `config.yaml:2: unknown plugin "x"; known are hot_update, http_probe`,
				"plugins: {name: http_probe}": "config.yaml:1: wrong type: !!map is given, a list is wanted",
				"plugins: http_probe":         "config.yaml:1: wrong type: !!str `http_probe` is given, a list is wanted",
			},
		},
		"bootOrder": {
			[]string{"plugins:\n- {name: http_probe, bootOrder: -5}", "plugins:\n- name: http_probe\n  config: {bootorder: 7}"},
			map[string]string{
				"plugins:\n- {name: http_probe, bootOrder: last}":            "config.yaml:2: wrong type: !!str `last` is given, a number (int) is wanted",
				"plugins:\n- name: http_probe\n  config: {bootOrder: first}": "config.yaml:3: bootOrder: want a number",
			},
		},
		"restartPolicy": {
			[]string{"restartPolicy: Always", "restartPolicy: OnFailure", "restartpolicy: Never"},
			map[string]string{
				"restartPolicy: always":  `config.yaml:1: restartPolicy: "always" is given, want one of Always, OnFailure, Never`,
				"restartPolicy: [Never]": "config.yaml:1: wrong type: !!seq is given, string is wanted",
			},
		},
		"sidecarStartOrder": {
			[]string{"sidecarStartOrder: Before", "sidecarstartorder: After"},
			map[string]string{"sidecarStartOrder: Later": `config.yaml:1: sidecarStartOrder: "Later" is given, want one of Before, After`},
		},
		"resources": {
			[]string{"resources: {CPU: 100m, Memory: 128Mi}", "resources: {cpu: '1', memory: 1e9}", "resources:"},
			map[string]string{
				"resources: {GPU: '1'}":    `config.yaml: resources: "GPU": want CPU or Memory`,
				"resources: {Memory: big}": `config.yaml: resources: Memory: not readable: quantity "big": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
				"resources: [CPU]":         "config.yaml:1: wrong type: !!seq is given, a mapping is wanted",
			},
		},
		"server.address": {
			[]string{"server: {address: 127.0.0.1:80}", "server: {address: '[::1]:80'}", "server: {address: localhost:80}", "server: {address: ':80', tokenFile: t}",
				"server: {address: 0.0.0.0:80, tls: {certFile: c, keyFile: k, clientCAFile: a}}"},
			map[string]string{
				"server: {address: '80'}":           "config.yaml: server.address: address 80: missing port in address",
				"server: {address: '[::1:80'}":      "config.yaml: server.address: address [::1:80: missing ']' in address",
				"server: {address: ':80'}":          "config.yaml: server.address :80 can be reached by others: give tokenFile or tls.clientCAFile",
				"server: {address: 'gs-0:80'}":      "config.yaml: server.address gs-0:80 can be reached by others: give tokenFile or tls.clientCAFile",
				"server: {address: '10.0.0.1:80'}":  "config.yaml: server.address 10.0.0.1:80 can be reached by others: give tokenFile or tls.clientCAFile",
				"server: {addressX: 127.0.0.1:80}":  `config.yaml:1: unknown key "addressX"; did you mean "address"?`,
				"server: {address: {host: a}}":      "config.yaml:1: wrong type: !!map is given, string is wanted",
				"server: {tokenfile: a, x: b}":      `config.yaml:1: unknown key "x"; known are address, tls, tokenFile`,
				"server: 127.0.0.1:80":              "config.yaml:1: wrong type: !!str `127.0.0...` is given, a mapping is wanted",
				"server: {tls: {clientCAFile: ca}}": "config.yaml: server.tls: clientCAFile needs certFile and keyFile",
				"server: {tls: {keyFile: k}}":       "config.yaml: server.tls: certFile and keyFile go together",
			},
		},
		"selfTestCondition": {
			[]string{"selfTestCondition: example.com/sidecar", "selfTestCondition: 'off'"},
			map[string]string{
				"selfTestCondition: Ready": "config.yaml: selfTestCondition: condition Ready: written by kubelet or a controller, choose a type of your own",
				"selfTestCondition: a b":   `config.yaml: selfTestCondition: condition type "a b": name part must consist of`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range tt.good {
				if _, err := parse(text); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
			for text, want := range tt.bad {
				_, err := parse(text)
				got := faultsOf(err)
				if len(got) != 1 || !strings.HasPrefix(got[0], want) {
					t.Errorf("%s:\n%q, want only\n%q", text, got, want)
				}
			}
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse("restartPolicy: Sometimes\nhelth: x\nresources: {GPU: 1}\nserver: {tls: {keyFile: k}, address: '1'}\n")
	want := []string{
		`config.yaml:1: restartPolicy: "Sometimes" is given, want one of Always, OnFailure, Never`,
		`config.yaml:2: unknown key "helth"; did you mean "health"?`,
		`config.yaml: resources: "GPU": want CPU or Memory`,
		"server.tls: certFile and keyFile go together",
		"server.address: address 1: missing port in address",
	}
	if diff := cmp.Diff(want, faultsOf(err)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	f, err := parse("plugins:\n- name: http_probe\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Server.Listen(); got != "127.0.0.1:5000" {
		t.Errorf("address %s", got)
	}
	if diff := cmp.Diff(&probing{}, f.Plugins[0].Config); diff != "" {
		t.Errorf("configuration of a plugin that is not configured (-want +got):\n%s", diff)
	}
	if _, err := parse("plugins:\n- name: http_probe\n  config:\n"); err != nil {
		t.Errorf("empty configuration of a plugin: %v", err)
	}
}

// Aliases and merge keys are expanded, and the result is bounded.
func TestAliases(t *testing.T) {
	t.Parallel()
	f, err := parse("plugins:\n- name: http_probe\n  config: &c\n    fileDir: ${SELF:POD_NAME}\n    startDelaySeconds: 3\n- name: hot_update\n  config:\n    <<: *c\n    startDelaySeconds: 4\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []*probing{{StartDelaySeconds: 3, FileDir: "gs-0"}, {StartDelaySeconds: 4, FileDir: "gs-0"}}
	for i := range want {
		if diff := cmp.Diff(want[i], f.Plugins[i].Config); diff != "" {
			t.Errorf("plugin %d (-want +got):\n%s", i, diff)
		}
	}
	deep := "plugins:\n- name: http_probe\n  config: {endpoints: [{value: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}]}\n"
	if _, err := parse(deep); err == nil || !strings.Contains(err.Error(), "config.yaml:3: nested too deeply") {
		t.Errorf("error %v", err)
	}
}

func TestConfigMaps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"block":               {"kind: ConfigMap\ndata:\n  readme: x\n  config.yml: |\n    plugins: []\n    helth: x\n", `config.yaml:6: unknown key "helth"; did you mean "health"?`},
		"in one line":         {"kind: ConfigMap\ndata: {a.yaml: 'helth: x'}\n", `config.yaml:1: unknown key "helth"; did you mean "health"?`},
		"without a YAML file": {"kind: ConfigMap\ndata: {readme: x}\n", `config.yaml:1: unknown key "kind"; known are health, plugins, procRoot, resources, restartPolicy, selfTestCondition, server, sidecarStartOrder`},
		"without data":        {"kind: ConfigMap\n", `config.yaml:1: unknown key "kind"`},
		"empty file in it":    {"kind: ConfigMap\ndata: {a.yaml: ''}\n", "config.yaml: empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tt.text)
			if got := faultsOf(err); len(got) == 0 || !strings.HasPrefix(got[0], tt.want) {
				t.Errorf("faults %q, want %q first", got, tt.want)
			}
		})
	}
}

func TestTemplatesThatHaveNoValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"health: ${SELF:X}":           "config.yaml:1: ${SELF:X}: the environment of this program has no X",
		"health: ${POD:X}":            "config.yaml:1: ${POD:X}: no container of the pod has X in its env",
		"health: ${POD:IP}":           "config.yaml:1: ${POD:IP}: container app takes IP from elsewhere (valueFrom), only literal values can be seen",
		"health: ${SELF:X}${SELF:Y}":  "config.yaml:1: ${SELF:X}: the environment of this program has no X",
		"resources: {'${SELF:X}': 1}": "config.yaml:1: ${SELF:X}: the environment of this program has no X",
	} {
		_, err := parse(text)
		if got := faultsOf(err); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	_, err := config.Parse("c", []byte("health: ${POD:X}"), types(), config.NewLookup(nil, nil))
	if got, want := faultsOf(err), "c:1: ${POD:X}: the pod has not been read"; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A filled-in value is checked like a literal one, with the type of the result.
func TestTemplatesInTypedFields(t *testing.T) {
	t.Parallel()
	const text = "plugins:\n- name: http_probe\n  config:\n    startDelaySeconds: %s\n"
	for value, want := range map[string]string{
		"${SELF:DELAY}":    "",
		"${SELF:POD_NAME}": "config.yaml:4: wrong type: !!str `gs-0` is given, a number (int) is wanted",
		"'${SELF:DELAY}'":  "config.yaml:4: wrong type: !!str `7` is given, a number (int) is wanted",
		"-${SELF:DELAY}":   "config.yaml:2: plugin http_probe: startDelaySeconds is negative",
	} {
		_, err := parse(strings.Replace(text, "%s", value, 1))
		if got := strings.Join(faultsOf(err), "\n"); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
