package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/plugin/config"
)

// storage parses one storageConfig.
func storage(t *testing.T, text string) []config.Storage {
	t.Helper()
	f, err := config.Parse("c", []byte("plugins: [{name: http_probe, config: {endpoints: [{storageConfig: "+text+"}]}}]"), types(), config.Unresolved)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f.Plugins[0].Config.(*probing).Endpoints[0].StorageConfig
}

// Every field of storageConfig that has a rule, with a value that breaks it.
func TestRulesOfStorage(t *testing.T) {
	t.Parallel()
	const target = "target: {group: g.example.com, version: v1, resource: things, name: x}"
	for text, want := range map[string]string{
		"{inKube: {annotationKey: 'a b'}}":                                                           `annotation "a b": `,
		"{inKube: {labelKey: '-'}}":                                                                  `label "-": `,
		"{inKube: {conditionType: PodScheduled}}":                                                    "storageConfig: condition PodScheduled: written by kubelet or a controller, choose a type of your own",
		"{inKube: {configMap: {key: k}}}":                                                            "object configmaps namespace/: no name",
		"{inKube: {configMap: {name: k}}}":                                                           `JSON pointer "/data/": element "" is not allowed`,
		"{inKube: {" + target + ", jsonPath: spec/x}}":                                               `JSON pointer "spec/x": want /member/member`,
		"{inKube: {" + target + ", jsonPath: /metadata/name}}":                                       "of metadata only labels and annotations can be written",
		"{inKube: {" + target + ", jsonPath: ''}}":                                                   "inKube: target needs jsonPath or markerPolicies",
		"{inKube: {target: {version: v1, resource: things}, jsonPath: /spec/x}}":                     "object things : no name",
		"{inKube: {target: {group: g, resource: t, name: x}, jsonPath: /spec/x}}":                    "object t.g x: no version",
		"{inKube: {markerPolicies: [{state: s, jsonPathConfigs: [{jsonPath: /spec/x, value: 1}]}]}}": "markerPolicies: state s: jsonPathConfigs needs target",
		"{httpMetric: {metricName: 'a b'}}":                                                          `metric name "a b": want letters, digits, colons and underscores`,
		"{httpMetric: {}}":                                                                           `metric name "": want letters, digits, colons and underscores`,
	} {
		err := config.CheckStorage(storage(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestAllStoragesAreWritten(t *testing.T) {
	t.Parallel()
	storages := storage(t, "[{inKube: {annotationKey: a}}, {httpMetric: {metricName: m}}]")
	got, err := config.Outputs(storages, where())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]output.Output{output.Annotation{Object: pod, Key: "a"}, output.Gauge{Name: "m"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	faults := storage(t, "[{inKube: {conditionType: Ready}}, {inKube: {conditionType: PodScheduled}}]")
	if err := config.CheckStorage(faults); err == nil || !strings.Contains(err.Error(), "condition Ready") || !strings.Contains(err.Error(), "condition PodScheduled") {
		t.Errorf("error %v, want both faults", err)
	}
}

// The name of a target is the name of the pod's owner of the group and resource, in the pod's namespace unless another one
// is given.
func TestTargetIsTheOwnerOfThePod(t *testing.T) {
	t.Parallel()
	owned := config.NewWhere(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs"}, {APIVersion: "a/b/c", Kind: "Broken", Name: "x"},
		{APIVersion: "games.example.com/v1", Kind: "Room", Name: "blue"},
	}}}, ownPod, "Probe")
	for text, want := range map[string]output.Object{
		"{group: apps, version: v1, resource: replicasets, podOwner: true}": {Group: "apps", Version: "v1", Resource: "replicasets", Namespace: "games", Name: "rs"},
		"{group: games.example.com, version: v1, resource: rooms, podOwner: true, namespace: lobby}": {
			Group: "games.example.com", Version: "v1", Resource: "rooms", Namespace: "lobby", Name: "blue"},
		"{group: games.example.com, version: v1, resource: rooms, name: red}": {Group: "games.example.com", Version: "v1", Resource: "rooms", Name: "red"},
	} {
		got, err := config.Outputs(storage(t, "{inKube: {jsonPath: /spec/x, target: "+text+"}}"), owned)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff([]output.Output{output.Field{Object: want, Pointer: "/spec/x"}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for want, pod := range map[string]*corev1.Pod{
		"target: podOwner: the pod has no owner among replicasets.apps": {},
		"target: podOwner: the pod has not been read":                   nil,
	} {
		_, err := config.Outputs(storage(t, "{inKube: {jsonPath: /spec/x, target: {group: apps, version: v1, resource: replicasets, podOwner: true}}}"),
			config.NewWhere(pod, ownPod, "Probe"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestTypeOfField(t *testing.T) {
	t.Parallel()
	for want, texts := range map[output.FieldType][]string{
		output.StringField: {"string", "String", "str", "text"},
		output.NumberField: {"number", "int", "integer", "int32", "int64", "float", "float32", "float64", "double", "INT"},
		output.BoolField:   {"boolean", "bool", "Bool"},
		"":                 {"", "object", "strings", "the state of the room"},
	} {
		for _, text := range texts {
			if got := config.TypeOfField(text); got != want {
				t.Errorf("%q means %q, want %q", text, got, want)
			}
		}
	}
}
