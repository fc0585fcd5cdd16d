package podprobe_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/probe/podprobe"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	idle   = "game.kruise.io/idle"
	cost   = "controller.kubernetes.io/pod-deletion-cost"
	filler = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
)

// marker selects the pods of app game, and has one probe.
func marker(name string, edit ...func(*v1alpha1.PodProbeMarker)) v1alpha1.PodProbeMarker {
	m := v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	m.Spec.Probes = []v1alpha1.PodContainerProbe{probe("idle")}
	for _, e := range edit {
		e(&m)
	}
	return m
}

// probe runs a command, and sets condition, labels and annotations.
func probe(name string) v1alpha1.PodContainerProbe {
	p := v1alpha1.PodContainerProbe{Name: name, ContainerName: "main", PodConditionType: "game.kruise.io/" + name}
	p.Probe.Exec = &corev1.ExecAction{Command: []string{"idle"}}
	p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"free": "yes"}, Annotations: map[string]string{cost: "-10"}},
		{State: v1alpha1.ProbeFailed, Labels: map[string]string{"busy": "yes"}, Annotations: map[string]string{cost: "10"}},
	}
	return p
}

func httpProbe(name string, port intstr.IntOrString) v1alpha1.PodContainerProbe {
	p := v1alpha1.PodContainerProbe{Name: name, ContainerName: "main", PodConditionType: "example.com/" + name}
	p.Probe.HTTPGet = &corev1.HTTPGetAction{Path: "/", Port: port}
	return p
}

// pod runs, and is selected by marker.
func pod(name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "game"},
	}}
	p.Spec.NodeName = "node-1"
	p.Spec.Containers = []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	for _, e := range edit {
		e(p)
	}
	return p
}

func compile(markers ...v1alpha1.PodProbeMarker) []podprobe.Marker { return podprobe.Compile(markers) }

func state(s v1alpha1.ProbeState, message string) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{State: s, Message: message, LastProbeTime: metav1.NewTime(noon), LastTransitionTime: metav1.NewTime(noon)}
}

// applied is the pod after the API server has applied the fields, with its managedFields.
func applied(t *testing.T, to *corev1.Pod, fields podprobe.Fields) *corev1.Pod {
	t.Helper()
	after := to.DeepCopy()
	before := managedfields.OwnedBy(to)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	labels, annotations, conditions := map[string]any{}, map[string]any{}, map[string]any{}
	for _, of := range []struct {
		live, fields map[string]string
		owned        map[string]bool
		record       map[string]any
	}{{after.Labels, fields.Labels, before.Labels, labels}, {after.Annotations, fields.Annotations, before.Annotations, annotations}} {
		for key := range of.owned {
			delete(of.live, key)
		}
		for key, value := range of.fields {
			of.live[key] = value
			of.record["f:"+key] = struct{}{}
		}
	}
	after.Status.Conditions = nil
	for _, c := range to.Status.Conditions {
		if !before.Conditions[string(c.Type)] {
			after.Status.Conditions = append(after.Status.Conditions, c)
		}
	}
	for _, c := range fields.Conditions {
		after.Status.Conditions = append(after.Status.Conditions, c)
		conditions[`k:{"type":"`+string(c.Type)+`"}`] = map[string]any{".": struct{}{}}
	}
	record, err := json.Marshal(map[string]any{
		"f:metadata": map[string]any{"f:labels": labels, "f:annotations": annotations},
		"f:status":   map[string]any{"f:conditions": conditions},
	})
	if err != nil {
		t.Fatal(err)
	}
	after.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: metav1.NewFieldsV1(string(record)),
	}}
	if fields.Empty() {
		after.ManagedFields = nil
	}
	return after
}
