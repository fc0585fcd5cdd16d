package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/sidecarmode"
)

// proposal is the example of the KEP with its indentation mended, and what configurations of the reference
// implementation have beside it.
const proposal = `
plugins:
  - name: http_probe
    config:
      bootorder: 2
      startDelaySeconds: 60
      endpoints:
        - url: "http://localhost:8080"
          method: GET
          timeout: 30
          expectedStatusCode: 200
          jsonPathConfig: {jsonPath: "players.#", fieldType: Integer, value: 3}
          storageConfig:
            type: InKube
            inKube:
              annotationKey: http_probe
              target: {group: game.kruise.io, version: v1alpha1, resource: gameservers, name: "${SELF:POD_NAME}", namespace: "${SELF:POD_NAMESPACE}"}
              jsonPath: /spec/opsState
              fieldType: free text
              markerPolices:
                - state: idle
                  labels: {gameserver-idle: 'true'}
                  annotations: {controller.kubernetes.io/pod-deletion-cost: '-10'}
                  jsonPathConfigs: [{jsonPath: /spec/opsState, fieldType: string, value: Allocated}]
  - name: hot_update
    bootorder: 1
    config:
      fileDir: /app/downloads
      loadPatchType: signal
      signal: {processName: 'nginx: master process nginx', signalName: SIGHUP}
      storageConfig: {inKube: {annotationKey: hot-update-result}}
restartpolicy: Always
sidecarstartorder: Before
resources: {CPU: 100m, Memory: 128Mi}
`

// The published schema accepts what the program accepts, and both refuse misspelt keys.
func TestSchemaAcceptsWhatTheProgramAccepts(t *testing.T) {
	t.Parallel()
	lower := regexp.MustCompile(`[a-zA-Z]+:( |\n)`)
	configs := map[string]string{
		"proposal":             proposal,
		"proposal, lower case": lower.ReplaceAllStringFunc(proposal, strings.ToLower),
		"proposal, upper case": strings.Replace(proposal, "startDelaySeconds", "STARTDELAYSECONDS", 1),
		"empty values":         "plugins:\n- name: pod_probe\n  config:\nserver:\nhealth:\n",
		"templates as numbers": strings.Replace(proposal, "timeout: 30", "timeout: ${SELF:TIMEOUT}", 1),
		"templates of values that are checked": "server: {address: '${SELF:ADDRESS}'}\nplugins:\n- name: hot_update\n" +
			"  config: {fileDir: '${SELF:DIR}', loadPatchType: none, storageConfig: {inKube: {labelKey: 'room-${POD:ROOM}'}}}\n",
		"yes": strings.Replace(proposal, "annotationKey: http_probe", "event: yes", 1),
	}
	for name, m := range documents[corev1.ConfigMap](t, "ConfigMap") {
		for key, text := range m.Data {
			if strings.HasSuffix(key, ".yaml") {
				configs[name] = text
			}
		}
	}
	published, err := sidecarmode.Schema(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(published)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	for name, text := range configs {
		if err := sidecarmode.Check(name, []byte(text), nil); err != nil {
			t.Errorf("%s: the program: %v", name, err)
		}
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if faults := (validator{schema}).check(schema, document, ""); len(faults) > 0 {
			t.Errorf("%s: the schema: %s", name, strings.Join(faults, "; "))
		}
	}
	for _, wrong := range []string{"fieldDir: x", "plugins: [{name: nobody}]", "restartPolicy: Sometimes", "plugins: {}"} {
		var document any
		if err := yaml.Unmarshal([]byte(wrong), &document); err != nil {
			t.Fatal(err)
		}
		if sidecarmode.Check("x", []byte(wrong), nil) == nil {
			t.Errorf("the program accepts %s", wrong)
		}
		if len((validator{schema}).check(schema, document, "")) == 0 {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}

// validator knows those keywords of JSON Schema that the published schema uses.
type validator struct{ root map[string]any }

func (v validator) check(schema map[string]any, value any, at string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, at+": "+fmt.Sprintf(format, args...)) }
	if ref, ok := schema["$ref"].(string); ok {
		schema = v.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if options, ok := schema["anyOf"].([]any); ok {
		var all []string
		fits := slices.ContainsFunc(options, func(option any) bool {
			inner := v.check(option.(map[string]any), value, at)
			all = append(all, inner...)
			return len(inner) == 0
		})
		if !fits {
			return all
		}
	}
	if want, ok := schema["const"]; ok && want != value {
		fault("%v, want %v", value, want)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		fault("%v is not one of %v", value, enum)
	}
	if pattern, ok := schema["pattern"].(string); ok {
		if s, ok := value.(string); ok && !regexp.MustCompile(pattern).MatchString(s) {
			fault("%q does not match %s", s, pattern)
		}
	}
	if types, ok := schema["type"]; ok && !strings.Contains(fmt.Sprint(types), kindOf(value)) {
		fault("%s, want %v", kindOf(value), types)
	}
	switch value := value.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range value {
			faults = append(faults, v.check(items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		faults = append(faults, v.members(schema, value, at)...)
	}
	return faults
}

func (v validator) members(schema, object map[string]any, at string) (faults []string) {
	properties, _ := schema["properties"].(map[string]any)
	patterns, _ := schema["patternProperties"].(map[string]any)
	for key, member := range object {
		known := false
		inner := func(s any) {
			known = true
			faults = append(faults, v.check(s.(map[string]any), member, at+"."+key)...)
		}
		if s, ok := properties[key]; ok {
			inner(s)
		}
		for pattern, s := range patterns {
			if regexp.MustCompile(pattern).MatchString(key) {
				inner(s)
			}
		}
		if known {
			continue
		}
		switch rest := schema["additionalProperties"].(type) {
		case bool:
			faults = append(faults, at+": unknown key "+key)
		case map[string]any:
			inner(rest)
		}
	}
	required, _ := schema["required"].([]any)
	for _, key := range required {
		if _, ok := object[key.(string)]; !ok {
			faults = append(faults, fmt.Sprintf("%s: no %s", at, key))
		}
	}
	return faults
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
