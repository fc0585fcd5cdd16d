package cli

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
)

// Target is what to restart: a pod, a workload, or the pods that match a selector.
type Target struct {
	Pod      string
	Workload *v1alpha1.WorkloadReference
	Selector *metav1.LabelSelector
	// Namespace of the target; empty means the one of the Config.
	Namespace string
}

// ParseTarget parses pod/NAME, deployment/NAME and the like, or a label selector in the form of kubectl's --selector.
func ParseTarget(text, selector string) (Target, error) {
	if (text == "") == (selector == "") {
		return Target{}, fmt.Errorf("%w: name either one resource, as deployment/web, or pods by --selector", console.ErrUsage)
	}
	if selector != "" {
		parsed, err := console.ParseSelector(selector)
		if err != nil {
			return Target{}, fmt.Errorf("%w: --selector: %w", console.ErrUsage, err)
		}
		return Target{Selector: parsed}, nil
	}
	kind, name, ok := console.KindName(text)
	switch {
	case IsKind(text):
		return Target{}, fmt.Errorf("%w: %q: want a name after the kind, or --selector", console.ErrUsage, text)
	case text != "" && !strings.Contains(text, "/"):
		return Target{}, fmt.Errorf("%w: %q: want KIND/NAME; did you mean deployment/%s or pod/%s?", console.ErrUsage, text, text, text)
	case !ok:
		return Target{}, fmt.Errorf("%w: %q: want KIND/NAME, as pod/web-0 or deployment/web", console.ErrUsage, text)
	case console.IsPod(kind):
		return Target{Pod: name}, nil
	}
	workload, ok := workloadOf(kind)
	if !ok {
		return Target{}, fmt.Errorf("%w: %q: want a pod, deployment, replicaset, statefulset, daemonset or cloneset", console.ErrUsage, kind)
	}
	workload.Name = name
	return Target{Workload: &workload}, nil
}

// kinds are the workloads that can be restarted, with the names that kubectl accepts. A name without a group is of the first one.
var kinds = []struct {
	v1alpha1.WorkloadReference
	names []string
}{
	{v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment"}, []string{"deployment", "deployments", "deploy"}},
	{v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "ReplicaSet"}, []string{"replicaset", "replicasets", "rs"}},
	{v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "StatefulSet"}, []string{"statefulset", "statefulsets", "sts"}},
	{v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet"}, []string{"daemonset", "daemonsets", "ds"}},
	{v1alpha1.WorkloadReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet"}, []string{"cloneset", "clonesets", "clone"}},
	{v1alpha1.WorkloadReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet"}, []string{"statefulset", "statefulsets", "asts"}},
	{v1alpha1.WorkloadReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet"}, []string{"daemonset", "daemonsets", "daemon"}},
}

func groupOf(workload v1alpha1.WorkloadReference) string {
	return schema.FromAPIVersionAndKind(workload.APIVersion, workload.Kind).Group
}

// workloadOf returns the kind of workload that a word in lower case stands for.
func workloadOf(word string) (v1alpha1.WorkloadReference, bool) {
	for _, kind := range kinds {
		if console.IsKind(word, groupOf(kind.WorkloadReference), kind.names...) {
			return kind.WorkloadReference, true
		}
	}
	return v1alpha1.WorkloadReference{}, false
}

// IsKind reports whether kubectl accepts a word for pods or for a workload that can be restarted.
func IsKind(word string) bool {
	word = strings.ToLower(word)
	_, ok := workloadOf(word)
	return ok || console.IsPod(word)
}

// TargetOf returns the object of a kind as a target, and false if objects of that kind cannot be restarted.
func TargetOf(kind schema.GroupVersionKind, namespace, name string) (Target, bool) {
	if kind.Group == "" && kind.Kind == "Pod" {
		return Target{Pod: name, Namespace: namespace}, true
	}
	for _, known := range kinds {
		if workload := known.WorkloadReference; workload.Kind == kind.Kind && groupOf(workload) == kind.Group {
			workload.Name = name
			return Target{Workload: &workload, Namespace: namespace}, true
		}
	}
	return Target{}, false
}

func (t Target) String() string {
	switch {
	case t.Workload != nil:
		return strings.ToLower(t.Workload.Kind) + "/" + t.Workload.Name
	case t.Selector != nil:
		return "selector " + metav1.FormatLabelSelector(t.Selector)
	}
	return "pod/" + t.Pod
}
