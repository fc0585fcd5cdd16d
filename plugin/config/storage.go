package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/result/output"
)

// Storage says where results are written, as in the KEP with additions.
type Storage struct {
	// Type is InKube or HTTPMetric; without it, the fields below that are set are used.
	Type       string      `yaml:"type" enum:"InKube,HTTPMetric"`
	InKube     *InKube     `yaml:"inKube"`
	HTTPMetric *HTTPMetric `yaml:"httpMetric"`
}

// HTTPMetric is a gauge at /metrics.
type HTTPMetric struct {
	MetricName string `yaml:"metricName"`
}

// InKube are places in the API. All that are set are written.
type InKube struct {
	// Of the pod.
	AnnotationKey string `yaml:"annotationKey"`
	LabelKey      string `yaml:"labelKey"`
	ConditionType string `yaml:"conditionType"`
	Event         bool   `yaml:"event"`
	// ConfigMap in the pod's namespace; it must exist.
	ConfigMap *ConfigMap `yaml:"configMap"`
	// Target is any other object, and JSONPath a JSON Pointer into it.
	Target   *TargetObject `yaml:"target"`
	JSONPath string        `yaml:"jsonPath"`
	// FieldType is free text, as in the reference implementation; see TypeOfField for values with an effect.
	FieldType string `yaml:"fieldType"`
	// MarkerPolicies set labels, annotations and fields by state, on the pod and on the target if there is one.
	MarkerPolicies []MarkerPolicy `yaml:"markerPolicies" alias:"markerPolices"`
}

// TypeOfField returns the JSON type for a fieldType; empty for an unknown one, which has no effect. Configurations for the
// reference implementation may contain any text, because it ignores the field.
func TypeOfField(text string) output.FieldType {
	switch strings.ToLower(text) {
	case "string", "str", "text":
		return output.StringField
	case "number", "int", "integer", "int32", "int64", "float", "float32", "float64", "double":
		return output.NumberField
	case "boolean", "bool":
		return output.BoolField
	}
	return ""
}

// ConfigMap identifies a key of a ConfigMap.
type ConfigMap struct { //nolint:revive // it is the name of the kind
	Name string `yaml:"name"`
	Key  string `yaml:"key"`
}

// TargetObject identifies the object that a storage writes to.
type TargetObject struct {
	Group       string `yaml:"group"`
	Version     string `yaml:"version"`
	Resource    string `yaml:"resource"`
	Namespace   string `yaml:"namespace"`
	Name        string `yaml:"name"`
	Subresource string `yaml:"subresource" enum:"status"`
	// PodOwner takes the name from the pod's owner of this group and resource.
	PodOwner bool `yaml:"podOwner"`
}

// MarkerPolicy is output.Policy in the configuration.
type MarkerPolicy struct {
	State              string            `yaml:"state"`
	GameServerOpsState string            `yaml:"gameServerOpsState"`
	Labels             map[string]string `yaml:"labels"`
	Annotations        map[string]string `yaml:"annotations"`
	JSONPathConfigs    []FieldValue      `yaml:"jsonPathConfigs"`
}

// FieldValue is a value for a member of the target.
type FieldValue struct {
	JSONPath  string `yaml:"jsonPath"`
	FieldType string `yaml:"fieldType"`
	Value     any    `yaml:"value"`
}

// Where is the pod whose results are stored.
type Where struct {
	Pod identity.Pod
	// Owners of the pod; unread means that the pod has not been read.
	Owners []ownerReference
	unread bool
	// Reason is the prefix of the reasons of Events.
	Reason string
	// nowhere means that only the form is checked.
	nowhere bool
}

type ownerReference struct{ group, kind, name string }

// NewWhere returns the Where for a pod.
func NewWhere(pod *corev1.Pod, identity identity.Pod, reason string) Where {
	where := Where{Pod: identity, Reason: reason}
	if pod == nil {
		where.unread = true
		return where
	}
	for _, owner := range pod.OwnerReferences {
		version, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil {
			where.Owners = append(where.Owners, ownerReference{version.Group, owner.Kind, owner.Name})
		}
	}
	return where
}

// CheckStorage returns errors in storages that do not depend on the pod.
func CheckStorage(storages []Storage) error {
	_, err := Outputs(storages, Where{Pod: identity.Pod{Namespace: "namespace", Name: "name"}, Reason: "Result", nowhere: true})
	return err
}

// Outputs returns the outputs of a list of storages. It returns all errors at once.
func Outputs(storages []Storage, where Where) ([]output.Output, error) {
	var outputs []output.Output
	var errs []error
	for _, s := range storages {
		some, err := s.outputs(where)
		outputs, errs = append(outputs, some...), append(errs, err)
	}
	for _, t := range outputs {
		errs = append(errs, t.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("storageConfig: %w", err)
	}
	return outputs, nil
}

func (s Storage) outputs(where Where) ([]output.Output, error) {
	switch {
	case s.Type == "InKube" && s.InKube == nil:
		return nil, errors.New("type InKube needs inKube")
	case s.Type == "HTTPMetric" && s.HTTPMetric == nil:
		return nil, errors.New("type HTTPMetric needs httpMetric")
	case s.InKube == nil && s.HTTPMetric == nil:
		return nil, errors.New("nothing is given: want inKube or httpMetric")
	}
	var outputs []output.Output
	if s.HTTPMetric != nil {
		outputs = append(outputs, output.Gauge{Name: s.HTTPMetric.MetricName})
	}
	if s.InKube == nil {
		return outputs, nil
	}
	more, err := s.InKube.outputs(where)
	if err == nil && len(more) == 0 {
		err = errors.New("inKube: no place is given")
	}
	return append(outputs, more...), err
}

func (k InKube) outputs(where Where) ([]output.Output, error) {
	pod := output.Pod(where.Pod)
	var outputs []output.Output
	if k.AnnotationKey != "" {
		outputs = append(outputs, output.Annotation{Object: pod, Key: k.AnnotationKey})
	}
	if k.LabelKey != "" {
		outputs = append(outputs, output.Label{Object: pod, Key: k.LabelKey})
	}
	if k.ConditionType != "" {
		outputs = append(outputs, output.Condition{Object: pod, Type: k.ConditionType})
	}
	if k.Event {
		outputs = append(outputs, output.Event{Object: pod, Reason: where.Reason})
	}
	if k.ConfigMap != nil {
		outputs = append(outputs, output.ConfigMapKey(where.Pod.Namespace, k.ConfigMap.Name, k.ConfigMap.Key))
	}
	object, err := k.object(where)
	if err != nil {
		return nil, err
	}
	switch {
	case k.JSONPath != "" && k.Target == nil:
		return nil, errors.New("inKube: jsonPath needs target")
	case k.JSONPath != "":
		outputs = append(outputs, output.Field{
			Object: object, Pointer: k.JSONPath, Subresource: k.Target.Subresource, Type: TypeOfField(k.FieldType),
		})
	case k.Target != nil && len(k.MarkerPolicies) == 0:
		return nil, errors.New("inKube: target needs jsonPath or markerPolicies")
	}
	marks, err := k.markers(pod, object)
	return append(outputs, marks...), err
}

// object returns the target, or the pod's GameServer if there is no target.
func (k InKube) object(where Where) (output.Object, error) {
	t := k.Target
	if t == nil {
		return output.Object{
			Group: "game.kruise.io", Version: "v1alpha1", Resource: "gameservers",
			Namespace: where.Pod.Namespace, Name: where.Pod.Name,
		}, nil
	}
	object := output.Object{Group: t.Group, Version: t.Version, Resource: t.Resource, Namespace: t.Namespace, Name: t.Name}
	if !t.PodOwner {
		return object, nil
	}
	if where.nowhere {
		object.Name = "owner"
		return object, nil
	}
	i := slices.IndexFunc(where.Owners, func(o ownerReference) bool {
		return o.group == t.Group && strings.HasPrefix(t.Resource, strings.ToLower(o.kind))
	})
	switch {
	case where.unread:
		return object, fmt.Errorf("target: podOwner: %w", ErrPodNotRead)
	case i < 0:
		return object, fmt.Errorf("target: podOwner: the pod has no owner among %s.%s", t.Resource, t.Group)
	}
	object.Name = where.Owners[i].name
	if object.Namespace == "" {
		object.Namespace = where.Pod.Namespace
	}
	return object, nil
}

// markers returns outputs for labels and annotations on the pod and on the target, and for fields on the target or
// GameServer.
func (k InKube) markers(pod, object output.Object) ([]output.Output, error) {
	if len(k.MarkerPolicies) == 0 {
		return nil, nil
	}
	onPod := output.Markers{Object: pod}
	onObject := output.Markers{Object: object}
	opsState := false
	for _, p := range k.MarkerPolicies {
		policy := output.Policy{State: p.State, Labels: p.Labels, Annotations: p.Annotations}
		onPod.Policies = append(onPod.Policies, policy)
		if k.Target == nil {
			policy.Labels, policy.Annotations = nil, nil
		} else {
			policy.Subresource = k.Target.Subresource
		}
		policy.Fields = map[string]any{}
		for _, f := range p.JSONPathConfigs {
			policy.Fields[f.JSONPath] = f.Value
		}
		if p.GameServerOpsState != "" {
			opsState = true
			policy.Fields["/spec/opsState"] = p.GameServerOpsState
		}
		if len(p.JSONPathConfigs) > 0 && k.Target == nil && p.GameServerOpsState == "" {
			return nil, fmt.Errorf("markerPolicies: state %s: jsonPathConfigs needs target", p.State)
		}
		onObject.Policies = append(onObject.Policies, policy)
	}
	outputs := []output.Output{onPod}
	if k.Target != nil || opsState {
		outputs = append(outputs, onObject)
	}
	return outputs, nil
}
