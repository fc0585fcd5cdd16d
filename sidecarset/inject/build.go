package inject

import (
	"path"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/podmeta"
)

// buildContainer returns a container of a SidecarSet as it is injected into this pod, or two containers for hot upgrades.
func (in *injection) buildContainer(set *Set, source *v1beta1.SidecarContainer, init bool) ([]built, error) {
	spec := source.DeepCopy().Container
	if err := in.override(set, source, &spec); err != nil {
		return nil, err
	}
	shared := in.share(source)
	if err := in.addVolumes(set, spec.VolumeMounts, spec.VolumeDevices); err != nil {
		return nil, err
	}
	spec.VolumeMounts, spec.VolumeDevices = mergeMounts(&spec, shared)
	transferred, err := in.transfer(set, source)
	if err != nil {
		return nil, err
	}
	spec.Env = slices.DeleteFunc(spec.Env, func(e corev1.EnvVar) bool { return e.Name == v1beta1.EnvSidecarInjected })
	spec.Env = append(spec.Env, corev1.EnvVar{Name: v1beta1.EnvSidecarInjected, Value: "true"})
	spec.Env = addEnv(addEnv(spec.Env, transferred), shared.env)
	before := source.PodInjectPolicy == v1beta1.BeforeAppContainer || source.PodInjectPolicy == "" && !init
	if source.VersionLabel != "" {
		in.setLabel(source.VersionLabel, podmeta.ImageVersion(spec.Image))
	}
	if !hot(source, init) {
		return []built{{set, source.Name, &spec, source.Unknown, before}}, nil
	}
	return in.pairForHotUpgrade(set, source, &spec, before), nil
}

// pairForHotUpgrade returns the container that works and the one that waits with the empty image.
func (in *injection) pairForHotUpgrade(set *Set, source *v1beta1.SidecarContainer, spec *corev1.Container, before bool) []built {
	var list []built
	for i, name := range ContainerNames(source, false) {
		c := spec.DeepCopy()
		c.Name = name
		version, alt := "1", "0"
		if i == 1 {
			c.Image, version, alt = source.UpgradeStrategy.HotUpgradeEmptyImage, alt, version
		}
		in.setAnnotation(v1beta1.PrefixSidecarSetVersion+name, version)
		in.setAnnotation(v1beta1.PrefixSidecarSetVersionAlt+name, alt)
		for _, env := range []struct{ name, prefix string }{
			{v1beta1.EnvSidecarSetVersion, v1beta1.PrefixSidecarSetVersion}, {v1beta1.EnvSidecarSetVersionAlt, v1beta1.PrefixSidecarSetVersionAlt},
		} {
			c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == env.name })
			c.Env = append(c.Env, corev1.EnvVar{Name: env.name, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + env.prefix + name + "']"},
			}})
		}
		list = append(list, built{set, source.Name, c, source.Unknown, before})
	}
	in.setAnnotation(v1beta1.AnnotationHotUpgradeWorking, annotation.WriteWorking(
		podWith(in.annotations), map[string]string{source.Name: list[0].spec.Name}))
	return list
}

func podWith(annotations map[string]string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Annotations = annotations
	return pod
}

// addEnv appends variables whose names are not used yet.
func addEnv(list, added []corev1.EnvVar) []corev1.EnvVar {
	for _, env := range added {
		if !slices.ContainsFunc(list, func(e corev1.EnvVar) bool { return e.Name == env.Name }) {
			list = append(list, env)
		}
	}
	return list
}

// sharing is what a container gets from the pod's own containers.
type sharing struct {
	mounts  []corev1.VolumeMount
	devices []corev1.VolumeDevice
	env     []corev1.EnvVar // used in subPathExpr of the mounts
}

// reference matches a variable reference in a subPathExpr.
var reference = regexp.MustCompile(`\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`)

func (in *injection) share(source *v1beta1.SidecarContainer) sharing {
	var s sharing
	mounts := source.ShareVolumePolicy.Type == v1beta1.ShareVolumeEnabled
	devices := source.ShareVolumeDevicePolicy != nil && source.ShareVolumeDevicePolicy.Type == v1beta1.ShareVolumeEnabled
	for _, c := range own(in.containers) {
		if mounts {
			for _, mount := range c.VolumeMounts {
				s.mounts = append(s.mounts, mount)
				for _, match := range reference.FindAllStringSubmatch(mount.SubPathExpr, -1) {
					s.env = append(s.env, named(c.Env, match[1])...)
				}
			}
		}
		if devices {
			s.devices = append(s.devices, c.VolumeDevices...)
		}
	}
	return s
}

// named returns the variable with a name; of several the last one, which is effective.
func named(list []corev1.EnvVar, name string) []corev1.EnvVar {
	all := allNamed(list, name)
	return all[max(0, len(all)-1):]
}

func allNamed(list []corev1.EnvVar, name string) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, env := range list {
		if env.Name == name {
			all = append(all, env)
		}
	}
	return all
}

// mergeMounts adds shared mounts and devices to a container's own. Each path is used once; the container's own mounts
// take precedence.
func mergeMounts(c *corev1.Container, shared sharing) ([]corev1.VolumeMount, []corev1.VolumeDevice) {
	taken := map[string]bool{}
	for _, mount := range c.VolumeMounts {
		taken[path.Clean(mount.MountPath)] = true
	}
	for _, device := range c.VolumeDevices {
		taken[path.Clean(device.DevicePath)] = true
	}
	mounts, devices := c.VolumeMounts, c.VolumeDevices
	for _, mount := range shared.mounts {
		if at := path.Clean(mount.MountPath); !taken[at] {
			taken[at] = true
			mounts = append(mounts, mount)
		}
	}
	for _, device := range shared.devices {
		if at := path.Clean(device.DevicePath); !taken[at] {
			taken[at] = true
			devices = append(devices, device)
		}
	}
	return mounts, devices
}

// fieldPath matches metadata.labels['KEY'] and metadata.annotations['KEY'].
var fieldPath = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)

// transfer returns the variables that a container copies from the pod's own containers.
func (in *injection) transfer(set *Set, source *v1beta1.SidecarContainer) ([]corev1.EnvVar, error) {
	var list []corev1.EnvVar
	for _, rule := range source.TransferEnv {
		from := rule.SourceContainerName
		if rule.SourceContainerNameFrom != nil && rule.SourceContainerNameFrom.FieldRef != nil {
			match := fieldPath.FindStringSubmatch(rule.SourceContainerNameFrom.FieldRef.FieldPath)
			if match == nil {
				return nil, refuse(set.name, "metadata", "transferEnv of container %s names the field %q, which is not supported",
					source.Name, rule.SourceContainerNameFrom.FieldRef.FieldPath)
			}
			from = map[string]map[string]string{"labels": in.pod.Labels, "annotations": in.pod.Annotations}[match[1]][match[2]]
		}
		names := slices.Clone(rule.EnvNames)
		if rule.EnvName != "" {
			names = append(names, rule.EnvName)
		}
		slices.Sort(names)
		for _, c := range own(in.containers) {
			if c.Name != from {
				continue
			}
			for _, name := range slices.Compact(names) {
				list = append(list, named(c.Env, name)...)
			}
		}
	}
	return list, nil
}

// override applies the resourcesPolicy, and what the pod's annotations request and the SidecarSet allows.
func (in *injection) override(set *Set, source *v1beta1.SidecarContainer, spec *corev1.Container) error {
	if p := set.policies[source.Name]; p != nil {
		resources, err := in.resources(set, source.Name, p)
		if err != nil {
			return err
		}
		spec.Resources = resources
	}
	if image, ok := in.pod.Annotations[v1beta1.PrefixSidecarImage+source.Name]; ok {
		if !set.allows(v1beta1.OverrideImage) {
			in.warn(set, v1beta1.PrefixSidecarImage+source.Name)
		} else if image != "" {
			spec.Image = image
		}
	}
	key := v1beta1.PrefixSidecarResources + source.Name
	text, ok := in.pod.Annotations[key]
	if !ok {
		return nil
	}
	if !set.allows(v1beta1.OverrideResources) {
		in.warn(set, key)
		return nil
	}
	var resources corev1.ResourceRequirements
	if err := foreign.JSON(text, &resources); err != nil {
		return refuse(set.name, "metadata.annotations["+key+"]", "must be JSON as the resources of a container: %v", err)
	}
	spec.Resources = resources
	return nil
}

func (in *injection) warn(set *Set, key string) {
	in.warnings = append(in.warnings, "SidecarSet "+set.name+" does not allow the annotation "+key+"; it has no effect")
}
