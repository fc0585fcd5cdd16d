package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin/config"
)

var (
	ownPod     = identity.Pod{Namespace: "games", Name: "gs-0", UID: "u"}
	pod        = output.Pod(ownPod)
	gameserver = output.Object{Group: "game.kruise.io", Version: "v1alpha1", Resource: "gameservers", Namespace: "games", Name: "gs-0"}
)

func where() config.Where {
	return config.NewWhere(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "game.kruise.io/v1alpha1", Kind: "GameServer", Name: "the-owner"},
	}}}, ownPod, "Probe")
}

func TestStorage(t *testing.T) {
	t.Parallel()
	idle := map[string]string{"idle": "true"}
	tests := map[string]struct {
		text  string
		want  []output.Output
		fault string
	}{
		"annotation and label": {"{type: InKube, inKube: {annotationKey: a, labelKey: l}}", []output.Output{
			output.Annotation{Object: pod, Key: "a"}, output.Label{Object: pod, Key: "l"}}, ""},
		"everything at once": {"{inKube: {conditionType: C, event: true, configMap: {name: n, key: k}}, httpMetric: {metricName: m}}", []output.Output{
			output.Gauge{Name: "m"}, output.Condition{Object: pod, Type: "C"}, output.Event{Object: pod, Reason: "Probe"}, output.ConfigMapKey("games", "n", "k")}, ""},
		"target and jsonPath alone": {"{inKube: {target: {group: game.kruise.io, version: v1alpha1, resource: gameservers, namespace: games, name: gs-0}, jsonPath: /spec/opsState}}",
			[]output.Output{output.Field{Object: gameserver, Pointer: "/spec/opsState"}}, ""},
		"gameServerOpsState alone": {"{inKube: {markerPolices: [{state: idle, gameServerOpsState: WaitToBeDeleted}]}}", []output.Output{
			output.Markers{Object: pod, Policies: []output.Policy{{State: "idle"}}},
			output.Markers{Object: gameserver, Policies: []output.Policy{{State: "idle", Fields: map[string]any{"/spec/opsState": "WaitToBeDeleted"}}}}}, ""},
		"markers on pod and target": {"{inKube: {target: {group: game.kruise.io, version: v1alpha1, resource: gameservers, podOwner: true, subresource: status}, " +
			"markerPolicies: [{state: idle, labels: {idle: 'true'}, jsonPathConfigs: [{jsonPath: /status/x, value: 3}]}]}}", []output.Output{
			output.Markers{Object: pod, Policies: []output.Policy{{State: "idle", Labels: idle}}},
			output.Markers{Object: output.Object{Group: "game.kruise.io", Version: "v1alpha1", Resource: "gameservers", Namespace: "games", Name: "the-owner"},
				Policies: []output.Policy{{State: "idle", Labels: idle, Subresource: "status", Fields: map[string]any{"/status/x": 3}}}}}, ""},
		"a type without its part":      {"{type: HTTPMetric}", nil, "needs httpMetric"},
		"InKube without its part":      {"{type: InKube, httpMetric: {metricName: m}}", nil, "needs inKube"},
		"nothing":                      {"{}", nil, "nothing is given"},
		"empty inKube":                 {"{inKube: {}}", nil, "no place is given"},
		"jsonPath into nothing":        {"{inKube: {jsonPath: /spec/x}}", nil, "jsonPath needs target"},
		"target without a member":      {"{inKube: {target: {version: v1, resource: pods, name: p}}}", nil, "needs jsonPath or markerPolicies"},
		"member of no target":          {"{inKube: {markerPolicies: [{state: s, jsonPathConfigs: [{jsonPath: /spec/x, value: 1}]}]}}", nil, "needs target"},
		"owner of another kind":        {"{inKube: {target: {group: apps, version: v1, resource: statefulsets, podOwner: true}, jsonPath: /spec/x}}", nil, "no owner"},
		"what a target finds at fault": {"{inKube: {conditionType: Ready}}", nil, "written by kubelet or a controller"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e endpoint
			c := &struct {
				E endpoint `yaml:"e"`
			}{}
			f, err := config.Parse("c", []byte("plugins: [{name: x, config: {e: {storageConfig: "+tt.text+"}}}]"),
				config.Types{"x": func() any { return c }}, config.Unresolved)
			if err != nil {
				t.Fatal(err)
			}
			e = f.Plugins[0].Config.(*struct {
				E endpoint `yaml:"e"`
			}).E
			got, err := config.Outputs(e.StorageConfig, where())
			if (err != nil) != (tt.fault != "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("error %v, want %q", err, tt.fault)
			}
			if diff := cmp.Diff(tt.want, normal(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.fault != "no owner" && (config.CheckStorage(e.StorageConfig) != nil) != (tt.fault != "") {
				t.Errorf("check: %v", config.CheckStorage(e.StorageConfig))
			}
		})
	}
}

// normal drops empty maps, which mean the same as none.
func normal(outputs []output.Output) []output.Output {
	for _, t := range outputs {
		if m, ok := t.(output.Markers); ok {
			for i := range m.Policies {
				if len(m.Policies[i].Fields) == 0 {
					m.Policies[i].Fields = nil
				}
			}
		}
	}
	return outputs
}

func TestSchemaNamesEveryKey(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(config.Schema(types()))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"restartPolicy", "bootOrder", "markerPolicies", "startDelaySeconds", `"const":"http_probe"`, `"enum":["Always","OnFailure","Never"]`} {
		if !strings.Contains(string(b), key) {
			t.Errorf("the schema lacks %s:\n%s", key, b)
		}
	}
}
