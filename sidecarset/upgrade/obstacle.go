package upgrade

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/defaults"
)

// Obstacles returns what prevents an in-place update of the sidecars of a pod, in text for users; empty if nothing
// does. The result is the same as long as the target and the pod's annotations of the SidecarSet do not change.
func (t *Target) Obstacles(pod *corev1.Pod) []string {
	injected := annotation.Of(pod, t.SidecarSet)
	if injected == nil {
		return []string{"the pod has no readable annotation " + v1beta1.AnnotationSidecarSetHash + " of the SidecarSet"}
	}
	var found []string
	for i := range t.sidecars {
		s := &t.sidecars[i]
		for _, name := range s.containers() {
			container := s.find(&pod.Spec, name)
			if container == nil {
				if text := t.missing(s, pod, name); text != "" {
					found = append(found, text)
				}
				continue
			}
			for _, field := range lacking(s, container) {
				found = append(found, fmt.Sprintf("%s of container %s is not as in the spec", field, name))
			}
		}
	}
	for _, name := range injected.SidecarList {
		if !slices.Contains(t.Sidecars, name) {
			found = append(found, fmt.Sprintf("container %s has been removed from the spec, and cannot be from the pod", name))
		}
	}
	return append(found, t.changed(injected)...)
}

// missing returns why the container does not exist, or "" if it was left out on purpose.
func (t *Target) missing(s *sidecar, pod *corev1.Pod, name string) string {
	switch {
	case s.named(&pod.Spec, name) == nil:
		return fmt.Sprintf("the pod has no container %s", name)
	case t.spec.InjectionStrategy.ConflictPolicy == v1beta1.ConflictKeepPod:
		return ""
	}
	return fmt.Sprintf("container %s of the pod has not been injected, and is left alone", name)
}

// changed compares the spec with the spec from which the pod was created.
func (t *Target) changed(injected *annotation.Injected) []string {
	before := t.history.of(injected)
	if before == nil {
		if t.history.withoutImage(injected.WithoutImage) != t.Hashes.WithoutImage {
			return []string{"the pod is of a revision that is no longer known, and more than images has changed"}
		}
		return nil
	}
	var found []string
	mounted := map[string]bool{}
	for i := range t.sidecars {
		s := &t.sidecars[i]
		for _, mount := range s.VolumeMounts {
			mounted[mount.Name] = true
		}
		for _, device := range s.VolumeDevices {
			mounted[device.Name] = true
		}
		if was := sidecarNamed(before, s.Name); was != nil {
			for _, field := range changedFields(was, s.SidecarContainer) {
				found = append(found, fmt.Sprintf("%s of container %s has changed, and cannot in a running pod", field, s.Name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mounted)) {
		if !reflect.DeepEqual(plan.Decoded(volume(before, name)), plan.Decoded(volume(t.spec, name))) {
			found = append(found, fmt.Sprintf("volume %s has changed, and cannot in a running pod", name))
		}
	}
	return found
}

func sidecarNamed(spec *v1beta1.SidecarSetSpec, name string) *v1beta1.SidecarContainer {
	for _, list := range [][]v1beta1.SidecarContainer{spec.Containers, spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func volume(spec *v1beta1.SidecarSetSpec, name string) *corev1.Volume {
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == name {
			return &spec.Volumes[i]
		}
	}
	return nil
}

// changedFields returns the fields of a container that differ, except fields that can be changed in a running pod, and
// fields that only control the update.
func changedFields(was, is *v1beta1.SidecarContainer) []string {
	before, after := fields(was), fields(is)
	for _, list := range []map[string]any{before, after} {
		for _, field := range []string{"image", "resources", "upgradeStrategy", "versionLabel"} {
			delete(list, field)
		}
	}
	if followsTag(was) && followsTag(is) {
		delete(before, "imagePullPolicy")
		delete(after, "imagePullPolicy")
	}
	before["upgradeType"], after["upgradeType"] = hot(was), hot(is)
	return differing(before, after)
}

// followsTag reports whether the pull policy is the default for the image, so that it has only changed together with
// the tag. Pods keep their pull policy.
func followsTag(c *v1beta1.SidecarContainer) bool {
	return c.ImagePullPolicy == defaults.PullPolicy(c.Image)
}

func hot(c *v1beta1.SidecarContainer) bool {
	return c.UpgradeStrategy.UpgradeType == v1beta1.HotUpgrade
}

func differing(a, b map[string]any) []string {
	var names []string
	for name, value := range a {
		if !reflect.DeepEqual(value, b[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lacking returns the fields in which a pod's container does not have what the spec requires, whatever the pod's
// annotations say. Additional values come from the API server's defaults or other webhooks: admission has removed
// additions by the client. It only checks fields that determine what the container does, and that others have no reason
// to change.
func lacking(s *sidecar, container *corev1.Container) []string {
	var names []string
	if len(s.Command) > 0 && !slices.Equal(s.Command, container.Command) {
		names = append(names, "command")
	}
	if len(s.Args) > 0 && !slices.Equal(s.Args, container.Args) {
		names = append(names, "args")
	}
	has, asked := variables(container.Env), variables(s.Env)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		wanted, is := asked[name], has[name]
		if is == nil || is.Value != wanted.Value || (wanted.ValueFrom == nil) != (is.ValueFrom == nil) {
			names = append(names, "env "+name)
		}
	}
	return names
}

// variables returns variables by name. Of several with one name the last one is effective.
func variables(list []corev1.EnvVar) map[string]*corev1.EnvVar {
	named := make(map[string]*corev1.EnvVar, len(list))
	for i := range list {
		named[list[i].Name] = &list[i]
	}
	return named
}

func fields(value any) map[string]any {
	named, ok := plan.Decoded(value).(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return named
}
