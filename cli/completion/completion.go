// Package completion returns completions for arguments of kubectl-refit: names of objects of the cluster, containers of a
// pod or of the pods of a workload, environment variables of a pod. The shell's syntax must stay out.
package completion

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

// Workloads are the kinds that restart completes, as users type them.
var Workloads = []string{"pod", "deployment", "statefulset", "daemonset", "replicaset", "cloneset"}

// Updatable are the workloads whose pods can be updated in place.
var Updatable = []string{"deployment", "statefulset", "daemonset"}

// Requests are the kinds that timeline completes.
var Requests = []string{"crr", "restartrollout", "inplaceupdatepolicy"}

// Cluster reads completions from a cluster.
type Cluster struct {
	API       client.Reader
	Namespace string
}

// most is how many objects are listed: more are of no use to a user who types.
const most = 500

// Pods returns names of pods in the form that the user has begun: NAME or pod/NAME.
func (c Cluster) Pods(ctx context.Context, typed string) ([]string, error) {
	form := ""
	for _, prefix := range []string{"pod/", "pods/", "po/"} {
		if strings.HasPrefix(typed, prefix) {
			form = prefix
		}
	}
	return c.names(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), form, typed)
}

// Objects returns KIND/NAME for one of the kinds, or the kinds while the user has not typed one.
func (c Cluster) Objects(ctx context.Context, typed string, kinds ...string) ([]string, error) {
	kind, _, found := strings.Cut(typed, "/")
	if !found {
		var begun []string
		for _, kind := range kinds {
			begun = append(begun, kind+"/")
		}
		return matching(begun, typed), nil
	}
	of, known := kindOf(kind)
	if !known {
		return nil, nil
	}
	if of.Kind == "SidecarSet" { // it belongs to no namespace
		c.Namespace = ""
	}
	return c.names(ctx, of, kind+"/", typed)
}

func kindOf(kind string) (schema.GroupVersionKind, bool) {
	switch kind {
	case "crr":
		return v1beta1.GroupVersion().WithKind("ContainerRecreateRequest"), true
	case "inplaceupdatepolicy":
		return v1alpha1.GroupVersion().WithKind("InPlaceUpdatePolicy"), true
	case "sidecarset":
		return v1beta1.GroupVersion().WithKind("SidecarSet"), true
	case "restartschedule":
		return v1alpha1.GroupVersion().WithKind("RestartSchedule"), true
	case "restartrollout", "rr":
		return v1alpha1.GroupVersion().WithKind("RestartRollout"), true
	}
	target, err := rolloutcli.ParseTarget(kind+"/any", "")
	if err != nil {
		return schema.GroupVersionKind{}, false
	}
	return kindOfTarget(target), true
}

func kindOfTarget(target rolloutcli.Target) schema.GroupVersionKind {
	if target.Workload != nil {
		return schema.FromAPIVersionAndKind(target.Workload.APIVersion, target.Workload.Kind)
	}
	return corev1.SchemeGroupVersion.WithKind("Pod")
}

// Named returns the names of objects of a cluster-scoped kind.
func (c Cluster) Named(ctx context.Context, kind schema.GroupVersionKind, typed string) ([]string, error) {
	return Cluster{API: c.API}.names(ctx, kind, "", typed)
}

// Secrets returns the names of the Secrets of the namespace. Only their metadata is read.
func (c Cluster) Secrets(ctx context.Context, typed string) ([]string, error) {
	return c.names(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), "", typed)
}

func (c Cluster) names(ctx context.Context, kind schema.GroupVersionKind, form, typed string) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.API.List(ctx, list, client.InNamespace(c.Namespace), client.Limit(most)); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = form + list.Items[i].Name
	}
	return matching(names, typed), nil
}

// Containers returns the containers of a pod or of the pods of a workload, NAME or KIND/NAME, or of the pods that a
// selector matches.
func (c Cluster) Containers(ctx context.Context, of, selector, typed string) ([]string, error) {
	spec, err := c.podSpec(ctx, of, selector)
	if err != nil || spec == nil {
		return nil, err
	}
	var names []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		names = append(names, container.Name)
	}
	return matching(names, typed), nil
}

// Variables returns the environment variables of a pod that come from its labels and annotations, as NAME=.
func (c Cluster) Variables(ctx context.Context, of, typed string) ([]string, error) {
	spec, err := c.podSpec(ctx, of, "")
	if err != nil || spec == nil {
		return nil, err
	}
	var names []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, variable := range container.Env {
			if from := variable.ValueFrom; from != nil && from.FieldRef != nil &&
				(strings.HasPrefix(from.FieldRef.FieldPath, "metadata.labels[") || strings.HasPrefix(from.FieldRef.FieldPath, "metadata.annotations[")) {
				names = append(names, variable.Name+"=")
			}
		}
	}
	return matching(names, typed), nil
}

// podSpec returns the spec of the pod or of the pods of a workload; nil if there is none.
func (c Cluster) podSpec(ctx context.Context, of, selector string) (*corev1.PodSpec, error) {
	if selector != "" {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return nil, err
		}
		var pods corev1.PodList
		if err := c.API.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabelsSelector{Selector: parsed}, client.Limit(1)); err != nil || len(pods.Items) == 0 {
			return nil, err
		}
		return &pods.Items[0].Spec, nil
	}
	if of == "" {
		return nil, nil
	}
	if !strings.Contains(of, "/") {
		of = "pod/" + of
	}
	target, err := rolloutcli.ParseTarget(of, "")
	if err != nil {
		return nil, err
	}
	if target.Workload == nil {
		var pod corev1.Pod
		err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: target.Pod}, &pod)
		return &pod.Spec, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kindOfTarget(target))
	if err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: target.Workload.Name}, object); err != nil {
		return nil, err
	}
	raw, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil {
		return nil, err
	}
	var spec corev1.PodSpec
	return &spec, runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec)
}

// matching returns the values that begin with what was typed, each once.
func matching(values []string, typed string) []string {
	values = slices.DeleteFunc(values, func(value string) bool { return !strings.HasPrefix(value, typed) })
	var once []string
	for _, value := range values {
		if !slices.Contains(once, value) {
			once = append(once, value)
		}
	}
	return once
}
