package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/internal/foreign"
)

// Object is a workload as the API server has it: a Deployment, a StatefulSet or a DaemonSet.
type Object interface {
	metav1.Object
	runtime.Object
}

// NewObject returns an empty Deployment or StatefulSet for this kind, and otherwise a DaemonSet.
func NewObject(kind string) Object {
	switch kind {
	case "Deployment":
		return &appsv1.Deployment{}
	case "StatefulSet":
		return &appsv1.StatefulSet{}
	}
	return &appsv1.DaemonSet{}
}

// TemplateOf returns the pod template of a workload; nil for another object.
func TemplateOf(object metav1.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	}
	return nil
}

// SelectorOf returns the selector of a workload; nil for another object.
func SelectorOf(object metav1.Object) *metav1.LabelSelector {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	case *appsv1.DaemonSet:
		return o.Spec.Selector
	}
	return nil
}

// From returns a workload with its ReplicaSets, or its ControllerRevisions, as a Workload; nil for another object. It returns
// [foreign.ErrUnreadable] if a template is out of bounds: it must not be compared.
func From(object metav1.Object, replicaSets []*appsv1.ReplicaSet, revisions []*appsv1.ControllerRevision) (*Workload, error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return FromDeployment(o, replicaSets)
	case *appsv1.StatefulSet:
		return FromStatefulSet(o, revisions)
	case *appsv1.DaemonSet:
		return FromDaemonSet(o, revisions)
	}
	return nil, nil //nolint:nilnil // there are no other kinds
}

// Readable returns [foreign.ErrUnreadable] if the template of a workload is out of bounds.
func Readable(object metav1.Object) error {
	if t := TemplateOf(object); t != nil {
		return CheckTemplate(object.GetName(), t)
	}
	return nil
}

// CheckTemplate returns [foreign.ErrUnreadable] if a template is out of bounds. name is the object that has it.
func CheckTemplate(name string, t *corev1.PodTemplateSpec) error {
	if err := foreign.Spec(&t.Spec); err != nil {
		return fmt.Errorf("template of %s: %w", name, err)
	}
	return nil
}

// RevisionTemplate returns the template in a ControllerRevision: its data is a strategic merge patch that replaces spec.template.
func RevisionTemplate(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := foreign.Object(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s: %w", r.Name, err)
	}
	return &data.Spec.Template, CheckTemplate(r.Name, &data.Spec.Template)
}
