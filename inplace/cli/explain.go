package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/gate"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

// explain prints the plan stage by stage, and consequences that the user might not expect.
func (u *updater) explain(ctx context.Context, update *plan.Update, wanted *corev1.PodTemplateSpec) {
	mode := ""
	if u.DryRun {
		mode = ", dry run: nothing is changed"
	}
	where := "on node " + u.pod.Spec.NodeName
	if !scheduled(u.pod) {
		where = "on no node yet"
	}
	u.Output.Print("pod %s/%s %s%s\n", u.pod.Namespace, u.pod.Name, where, mode)
	for i := range update.Stages {
		u.Output.Print("  %d. %s\n", i+1, strings.Join(u.stage(&update.Stages[i]), "\n     "))
	}
	stops := update.Stops(&u.pod.Spec)
	switch {
	case len(stops) == 0:
		u.Output.Print("  no container is stopped\n")
	case gate.Of(u.pod) != "":
		u.Output.Print("  before %s is stopped the pod is taken out of its Services (readiness gate %s), for at least %d s\n", stops[0], gate.Of(u.pod), u.Options.DrainSeconds)
	default:
		u.Output.Print("  the pod has no readiness gate KruisePodReady or InPlaceUpdateReady: its Services send it requests until %s is stopped\n", stops[0])
	}
	if kept := u.untouched(stops); len(kept) > 0 {
		u.Output.Print("  not stopped: %s\n", strings.Join(kept, ", "))
	}
	switch {
	case len(update.Images()) == 0 || !scheduled(u.pod):
	case u.Puller == nil:
		u.Output.Print("  an image that the node does not have is pulled while its container is down\n")
	default:
		u.Output.Print("  before that node %s pulls the new images that it does not have\n", u.pod.Spec.NodeName)
	}
	if recorded, err := record.Read(u.pod); err == nil && recorded != nil && recorded.Pending() {
		u.Output.Print("  this has what was requested before and has not been begun\n")
	}
	u.warnOfOwner(ctx, update, wanted)
}

// scheduled reports whether the pod is bound to a node, which is necessary to pull images.
func scheduled(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// stage returns lines that describe a stage.
func (u *updater) stage(stage *plan.Stage) []string {
	var lines []string
	switch stage.Kind {
	case plan.StageResize:
		for _, c := range stage.Changes {
			lines = append(lines, fmt.Sprintf("resize container %s to %s", c.Container, describe(c.Resources)))
		}
	case plan.StageMetadata:
		lines = append(lines, "change labels and annotations: "+strings.Join(append(keys(stage.Labels), keys(stage.Annotations)...), ", "))
	default:
		for _, c := range stage.Changes {
			lines = append(lines, u.restart(&c))
		}
	}
	return lines
}

func (u *updater) restart(c *plan.Change) string {
	var parts []string
	if c.Image != "" {
		parts = append(parts, "set its image to "+c.Image)
	}
	for _, values := range []map[string]string{c.Metadata.Labels, c.Metadata.Annotations} {
		for _, key := range change.Sorted(values) {
			parts = append(parts, fmt.Sprintf("set %s=%s, which its environment refers to", key, values[key]))
		}
	}
	how := "kubelet stops it and starts it again"
	if c.Image == "" {
		how = "it is restarted by refit-daemon"
	}
	return fmt.Sprintf("container %s: %s; %s", c.Container, strings.Join(parts, ", "), how)
}

func describe(resources *corev1.ResourceRequirements) string {
	var parts []string
	for _, list := range []struct {
		name  string
		items corev1.ResourceList
	}{{"requests", resources.Requests}, {"limits", resources.Limits}} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if quantity, ok := list.items[name]; ok {
				parts = append(parts, fmt.Sprintf("%s.%s=%s", list.name, name, quantity.String()))
			}
		}
	}
	return strings.Join(parts, " ")
}

func keys(changes map[string]*string) []string {
	var texts []string
	for _, key := range change.Sorted(changes) {
		if changes[key] == nil {
			texts = append(texts, key+" removed")
		} else {
			texts = append(texts, key+"="+*changes[key])
		}
	}
	return texts
}

func (u *updater) untouched(stops []string) []string {
	var names []string
	for _, container := range change.Running(plan.Template(u.pod)) {
		if !slices.Contains(stops, container.Name) {
			names = append(names, container.Name)
		}
	}
	return names
}

// warnOfOwner prints a warning if the pod's owner has another template, because its next pod will not have the change.
func (u *updater) warnOfOwner(ctx context.Context, update *plan.Update, wanted *corev1.PodTemplateSpec) {
	owner := metav1.GetControllerOf(u.pod)
	if owner == nil {
		return
	}
	template, err := u.API.Template(ctx, u.pod.Namespace, *owner)
	switch {
	case err != nil:
		u.Output.Print("  warning: the pod is owned by %s %s, whose pod template could not be read: %s\n", owner.Kind, owner.Name, err)
	case differs(template, wanted, update):
		u.Output.Print("  warning: the pod is owned by %s %s, whose pod template differs: the next pod it makes is not changed\n", owner.Kind, owner.Name)
	}
}

// differs reports whether a pod from the template would not have the changes of the update.
func differs(template, wanted *corev1.PodTemplateSpec, update *plan.Update) bool {
	next := wanted.DeepCopy()
	for _, stage := range update.Stages {
		for _, c := range stage.Changes {
			for _, container := range change.All(next) {
				made := slices.IndexFunc(change.All(template), func(of *corev1.Container) bool { return of.Name == container.Name })
				if container.Name != c.Container || made < 0 {
					continue
				}
				of := change.All(template)[made]
				if c.Image != "" && of.Image != c.Image || c.Resources != nil && describe(&of.Resources) != describe(&container.Resources) {
					return true
				}
			}
			if !has(template.Labels, c.Metadata.Labels) || !has(template.Annotations, c.Metadata.Annotations) {
				return true
			}
		}
	}
	return false
}

func has(all, some map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}
