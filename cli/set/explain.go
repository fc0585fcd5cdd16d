package set

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
)

// explain prints the plan stage by stage, and what the user might not expect.
func (u *updater) explain(ctx context.Context, update *plan.Update, wanted *corev1.PodTemplateSpec) {
	mode := ""
	if u.DryRun {
		mode = ", dry run: nothing is changed"
	}
	u.Output.Print("pod %s/%s on node %s%s\n", u.pod.Namespace, u.pod.Name, u.pod.Spec.NodeName, mode)
	for i := range update.Stages {
		u.Output.Print("  %d. %s\n", i+1, strings.Join(u.stage(&update.Stages[i]), "\n     "))
	}
	stops := update.Stops(&u.pod.Spec)
	switch {
	case len(stops) == 0:
		u.Output.Print("  no container is stopped\n")
	case inplace.HasReadinessGate(u.pod):
		u.Output.Print("  before %s is stopped the pod is taken out of its Services, for at least %d s\n", stops[0], u.Options.DrainSeconds)
	default:
		u.Output.Print("  the pod has no readiness gate InPlaceUpdateReady: its Services send it requests until %s is stopped\n", stops[0])
	}
	if kept := u.untouched(stops); len(kept) > 0 {
		u.Output.Print("  not stopped: %s\n", strings.Join(kept, ", "))
	}
	switch {
	case len(update.Images()) == 0:
	case u.Puller == nil:
		u.Output.Print("  an image that the node does not have is pulled while its container is down\n")
	default:
		u.Output.Print("  before that node %s pulls the new images that it does not have\n", u.pod.Spec.NodeName)
	}
	u.warnOfOwner(ctx, update, wanted)
}

// stage is what happens in it, a line each.
func (u *updater) stage(stage *plan.Stage) []string {
	var lines []string
	switch stage.Kind {
	case plan.StageResize:
		for _, change := range stage.Changes {
			lines = append(lines, fmt.Sprintf("resize container %s to %s", change.Container, describe(change.Resources)))
		}
	case plan.StageMetadata:
		lines = append(lines, "change labels and annotations: "+strings.Join(append(keys(stage.Labels), keys(stage.Annotations)...), ", "))
	default:
		for _, change := range stage.Changes {
			lines = append(lines, u.restart(&change))
		}
	}
	return lines
}

func (u *updater) restart(change *plan.Change) string {
	var parts []string
	if change.Image != "" {
		parts = append(parts, "set its image to "+change.Image)
	}
	for _, values := range []map[string]string{change.Metadata.Labels, change.Metadata.Annotations} {
		for _, key := range sorted(values) {
			parts = append(parts, fmt.Sprintf("set %s=%s, which its environment refers to", key, values[key]))
		}
	}
	how := "kubelet stops it and starts it again"
	if change.Image == "" {
		how = "it is restarted by refit-daemon"
	}
	return fmt.Sprintf("container %s: %s; %s", change.Container, strings.Join(parts, ", "), how)
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
	for _, key := range sorted(changes) {
		if changes[key] == nil {
			texts = append(texts, key+" removed")
		} else {
			texts = append(texts, key+"="+*changes[key])
		}
	}
	return texts
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (u *updater) untouched(stops []string) []string {
	var names []string
	for _, container := range u.pod.Spec.Containers {
		if !slices.Contains(stops, container.Name) {
			names = append(names, container.Name)
		}
	}
	return names
}

// warnOfOwner says that the pod's owner will make the next pod as before, where it has one whose template is not the same.
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

// differs reports whether a pod from the template would not have what the update changes.
func differs(template, wanted *corev1.PodTemplateSpec, update *plan.Update) bool {
	next := wanted.DeepCopy()
	for _, stage := range update.Stages {
		for _, change := range stage.Changes {
			for _, container := range all(next) {
				made := slices.IndexFunc(all(template), func(c *corev1.Container) bool { return c.Name == container.Name })
				if container.Name != change.Container || made < 0 {
					continue
				}
				of := all(template)[made]
				if change.Image != "" && of.Image != change.Image || change.Resources != nil && describe(&of.Resources) != describe(&container.Resources) {
					return true
				}
			}
			if !has(template.Labels, change.Metadata.Labels) || !has(template.Annotations, change.Metadata.Annotations) {
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

// summary prints what has stayed and what has not.
func (u *updater) summary() {
	u.Output.Say("done")
	same := "changed"
	if u.before.UID == u.pod.UID && u.before.Status.PodIP == u.pod.Status.PodIP {
		same = "as before"
	}
	u.Output.Print("  UID %s and IP %s: %s\n", u.pod.UID, u.pod.Status.PodIP, same)
	for _, status := range u.pod.Status.ContainerStatuses {
		for _, was := range u.before.Status.ContainerStatuses {
			switch {
			case was.Name != status.Name:
			case was.ContainerID == status.ContainerID:
				u.Output.Print("  container %s: not touched\n", status.Name)
			default:
				u.Output.Print("  container %s: %s, restarts %d -> %d\n", status.Name, status.Image, was.RestartCount, status.RestartCount)
			}
		}
	}
	u.Output.Print("  not ready for %s\n", u.unused.Round(100*time.Millisecond))
}
