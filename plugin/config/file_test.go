package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/plugin/config"
)

// probing is a plugin's configuration with all kinds of fields.
type probing struct {
	StartDelaySeconds int        `yaml:"startDelaySeconds"`
	Endpoints         []endpoint `yaml:"endpoints"`
	FileDir           string     `yaml:"fileDir"`
}

type endpoint struct {
	URL           string            `yaml:"url"`
	Headers       map[string]string `yaml:"headers"`
	Timeout       int               `yaml:"timeout"`
	Value         any               `yaml:"value"`
	StorageConfig []config.Storage  `yaml:"storageConfig" single:"true"`
}

func (p *probing) Validate() error {
	if p.StartDelaySeconds < 0 {
		return errors.New("startDelaySeconds is negative")
	}
	return nil
}

func types() config.Types {
	return config.Types{"http_probe": func() any { return &probing{} }, "hot_update": func() any { return &probing{} }}
}

func lookup() config.Lookup {
	env := map[string]string{"POD_NAME": "gs-0", "POD_NAMESPACE": "games", "PORT": "8080", "DELAY": "7"}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "app", Env: []corev1.EnvVar{{Name: "ROOM", Value: "blue"}, {Name: "IP", ValueFrom: &corev1.EnvVarSource{}}}},
		{Name: "sidecar", Env: []corev1.EnvVar{{Name: "ROOM", Value: "red"}, {Name: "LEVEL", Value: "3"}}},
	}}}
	return config.NewLookup(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, pod)
}

func parse(text string) (*config.File, error) {
	return config.Parse("config.yaml", []byte(text), types(), lookup())
}

// Every spelling of a key is read, at every level.
func TestBothSpellingsAtEveryLevel(t *testing.T) {
	t.Parallel()
	camel := `
plugins:
  - name: http_probe
    bootOrder: 3
    config:
      startDelaySeconds: 60
      fileDir: /d
      endpoints:
        - url: http://localhost:8080
          timeout: 30
          storageConfig:
            type: InKube
            inKube:
              annotationKey: a
              markerPolicies: [{state: idle, labels: {gameserver-idle: 'true'}}]
restartPolicy: Always
sidecarStartOrder: Before
resources: {CPU: 100m, Memory: 128Mi}
`
	lower := strings.NewReplacer("bootOrder", "bootorder", "startDelaySeconds", "startdelayseconds", "fileDir", "filedir",
		"storageConfig", "storageconfig", "inKube", "inkube", "annotationKey", "annotationkey", "markerPolicies", "markerPolices",
		"restartPolicy", "restartpolicy", "sidecarStartOrder", "sidecarstartorder").Replace(camel)
	inside := strings.Replace(strings.Replace(camel, "    bootOrder: 3\n", "", 1), "config:\n", "config:\n      bootorder: 3\n", 1)
	want, err := parse(camel)
	if err != nil {
		t.Fatal(err)
	}
	p := want.Plugins[0]
	if got := p.Config.(*probing); p.BootOrder != 3 || got.StartDelaySeconds != 60 || got.Endpoints[0].StorageConfig[0].InKube.MarkerPolicies[0].State != "idle" {
		t.Fatalf("read %+v %+v", p, got)
	}
	for name, text := range map[string]string{"lower case": lower, "bootorder inside config": inside} {
		got, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range got.Plugins {
			got.Plugins[i].Line, got.Plugins[i].Text = p.Line, p.Text
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-camelCase +got):\n%s", name, diff)
		}
	}
}

func TestFaultsSayWhereAndWhatWasMeant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown key at the top":  {"plugins: []\nrestartPolciy: Always\n", []string{`config.yaml:2: unknown key "restartPolciy"; did you mean "restartPolicy"?`, "    restartPolciy: Always"}},
		"unknown key of a plugin": {"plugins:\n- name: http_probe\n  config:\n    startDelaySecond: 1\n", []string{`config.yaml:4: unknown key "startDelaySecond"; did you mean "startDelaySeconds"?`}},
		"unknown key in a storage": {"plugins:\n- name: http_probe\n  config:\n    endpoints:\n    - storageConfig: {inKube: {anotationKey: x}}\n",
			[]string{`config.yaml:5: unknown key "anotationKey"; did you mean "annotationKey"?`}},
		"nothing like it": {"plugins:\n- {name: http_probe, zzz: 1}\n", []string{`unknown key "zzz"; known are bootOrder, config, name`}},
		"unknown plugin":  {"plugins:\n- name: http_prob\n", []string{`config.yaml:2: unknown plugin "http_prob"; did you mean "http_probe"?`}},
		"wrong types, all of them": {"plugins:\n- name: http_probe\n  bootOrder: first\n  config:\n    startDelaySeconds: soon\n    endpoints: 7\n", []string{
			"config.yaml:3: wrong type: !!str `first` is given, a number (int) is wanted", "config.yaml:5: wrong type: !!str `soon`", "config.yaml:6: wrong type: !!int `7` is given, a list is wanted"}},
		"mapping for text":                        {"plugins:\n- name: http_probe\n  config: {fileDir: {a: b}}\n", []string{"config.yaml:3: wrong type"}},
		"both spellings of a key":                 {"plugins:\n- name: http_probe\n  bootOrder: 1\n  bootorder: 2\n", []string{`config.yaml:4: key "bootOrder" is given in line 3 already`}},
		"plugin twice":                            {"plugins:\n- name: http_probe\n- name: http_probe\n", []string{"config.yaml:3: plugin http_probe is listed in line 2 already"}},
		"plugin's own rule":                       {"plugins:\n- name: http_probe\n  config: {startDelaySeconds: -1}\n", []string{"config.yaml:2: plugin http_probe: startDelaySeconds is negative"}},
		"not one of the words":                    {"restartPolicy: Sometimes\n", []string{`config.yaml:1: restartPolicy: "Sometimes" is given, want one of Always, OnFailure, Never`}},
		"resources":                               {"resources: {disk: 1Gi, CPU: lots}\n", []string{`"disk": want CPU or Memory`, `CPU: not readable: quantity "lots"`}},
		"exposed without a secret":                {"server: {address: ':5000'}\n", []string{"can be reached by others"}},
		"half a certificate":                      {"server: {tls: {certFile: a}}\n", []string{"certFile and keyFile go together"}},
		"no such variable":                        {"health: ${SELF:NOPE}\n", []string{"config.yaml:1: ${SELF:NOPE}: the environment of this program has no NOPE"}},
		"variable of the pod that is not literal": {"health: ${POD:IP}\n", []string{"container app takes IP from elsewhere"}},
		"two documents":                           {"plugins: []\n---\nplugins: []\n", []string{"config.yaml:2: one document is wanted", "config.yaml:3: one document is wanted"}},
		"empty":                                   {"", []string{"config.yaml: empty"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tt.text)
			if err == nil {
				t.Fatal("no error")
			}
			if name == "two documents" {
				if !strings.Contains(err.Error(), tt.want[0]) && !strings.Contains(err.Error(), tt.want[1]) {
					t.Errorf("%v", err)
				}
				return
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error\n%v\nlacks\n%s", err, want)
				}
			}
		})
	}
}

// The KEP's examples do not parse: a key is indented less than what follows it, a list's item has another
// indentation than its neighbours, and dots stand in quotes where keys belong. They are ConfigMaps.
func TestKEPExamplesThatDoNotParseShowTheLine(t *testing.T) {
	t.Parallel()
	inConfigMap := func(body string) string {
		return "apiVersion: v1\ndata:\n  config.yaml: |\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\nkind: ConfigMap\n"
	}
	tests := map[string]struct {
		text string
		line string
	}{
		"annotationKey beside inKube, target below it": {
			"plugins:\n- name: http_probe\n  config:\n    endpoints:\n    - storageConfig:\n        type: InKube\n        inKube:\n        annotationKey: http_probe\n         target:\n           group: game.kruise.io\n",
			"         target:",
		},
		"dots in quotes": {
			"plugins:\n- name: http_probe\n  config:\n    '''\n    storageConfig: {}\n- name: hot_update\n  config:\n    '''\n    storageConfig:\n      inKube:\n",
			"'''",
		},
		"markers deeper than what they belong to": {
			"plugins:\n- name: http_probe\n  config:\n    endpoints:\n    - storageConfig:\n        inKube:\n          annotationKey: a\n            markerPolices:\n            - state: idle\n",
			"markerPolices:",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, text := range map[string]string{"file": tt.text, "ConfigMap": inConfigMap(tt.text)} {
				_, err := parse(text)
				if err == nil {
					t.Fatalf("%s: no error", kind)
				}
				if !strings.Contains(err.Error(), tt.line) || !strings.Contains(err.Error(), "  > ") {
					t.Errorf("%s: error does not show the line %q:\n%v", kind, tt.line, err)
				}
			}
		})
	}
	_, err := parse(inConfigMap("plugins:\n- name: http_probe\n  confg: {}"))
	if err == nil || !strings.Contains(err.Error(), `config.yaml:6: unknown key "confg"`) {
		t.Errorf("line within the ConfigMap: %v", err)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	f, err := parse(`
plugins:
- name: http_probe
  config:
    startDelaySeconds: ${SELF:DELAY}
    fileDir: pre-${SELF:POD_NAME}-${POD:ROOM}/${POD:LEVEL}${OTHER:x}
    endpoints:
    - url: "http://localhost:${SELF:PORT}/"
      headers: {"X-${SELF:POD_NAME}": "${SELF:PORT}"}
      value: ${SELF:PORT}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &probing{
		StartDelaySeconds: 7, FileDir: "pre-gs-0-blue/3${OTHER:x}",
		Endpoints: []endpoint{{URL: "http://localhost:8080/", Headers: map[string]string{"X-gs-0": "8080"}, Value: "8080"}},
	}
	if diff := cmp.Diff(want, f.Plugins[0].Config); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := config.Parse("c", []byte("health: ${POD:X}"), types(), config.Unresolved); err != nil {
		t.Errorf("where there is no pod: %v", err)
	}
	if _, err := config.Parse("c", []byte("health: ${POD:X}"), types(), config.NewLookup(nil, nil)); err == nil {
		t.Error("a pod that cannot be read has a value")
	}
}

// A plugin can wait for values of the pod without delaying others. Errors in its configuration are reported at once.
func TestPluginsWaitForValuesOfThePod(t *testing.T) {
	t.Parallel()
	const text = `
plugins:
- name: http_probe
  config:
    startDelaySeconds: ${POD:DELAY}
    fileDir: %s
- name: hot_update
`
	read := func(dir string) (*config.File, error) {
		return config.Parse("c", []byte(strings.Replace(text, "%s", dir, 1)), types(), config.NewLookup(nil, nil))
	}
	f, err := read("${POD:ROOM} # s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(f.Awaits()), "c:5: ${POD:DELAY}: the pod has not been read\nc:6: ${POD:ROOM}: the pod has not been read"; got != want {
		t.Errorf("awaits %q, want %q", got, want)
	}
	if f.Plugins[0].Awaits == nil || f.Plugins[1].Awaits != nil {
		t.Errorf("%+v", f.Plugins)
	}
	if _, err := read("x\n    fielDir: x"); err == nil {
		t.Error("an unknown key is not told while the pod has not been read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("plugins:\n- name: http_probe\n  config: {endpoints: [{url: '${SELF:PORT}'}]}\n")
	f.Add("a: &a [*a]\n")
	f.Add("kind: ConfigMap\ndata: {c.yaml: '{'}\n")
	f.Add("plugins: &p\n- name: http_probe\n<<: {health: x}\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parse(text)
	})
}

// Lines of the file may hold credentials: they are shown when a file is checked, but not in a log, Event or response.
func TestErrorsWithoutTheTextOfTheFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"unknown key": "plugins: []\nservr: s3cret\n",
		"syntax":      "plugins: [\n s3cret: {\n",
		"two faults":  "plugins: []\nservr: s3cret\nhelth: s3cret\n",
	} {
		_, err := config.Parse("config.yaml", []byte(text), nil, config.Unresolved)
		if err == nil || !strings.Contains(err.Error(), "s3cret") {
			t.Fatalf("%s: %v, want an error that shows the line", name, err)
		}
		short := config.WithoutText(err)
		if strings.Contains(short.Error(), "s3cret") || !strings.Contains(short.Error(), "config.yaml:") {
			t.Errorf("%s: %v", name, short)
		}
	}
}
