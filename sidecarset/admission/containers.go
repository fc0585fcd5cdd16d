package admission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/revision"
)

func checkContainers(spec *v1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for _, used := range names(spec) {
		for _, message := range validation.IsDNS1123Label(used.name) {
			errs = append(errs, field.Invalid(used.at, used.name, message))
		}
		if seen[used.name] {
			errs = append(errs, field.Duplicate(used.at, used.name))
		}
		seen[used.name] = true
	}
	volumes := map[string]bool{}
	for i := range spec.Volumes {
		volumes[spec.Volumes[i].Name] = true
	}
	for i, name := range spec.PodVolumes {
		if volumes[name] {
			errs = append(errs, field.Invalid(at.Child("podVolumes").Index(i), name, "is a volume of the SidecarSet"))
		}
		volumes[name] = true
	}
	for i := range spec.InitContainers {
		errs = append(errs, checkContainer(&spec.InitContainers[i], true, volumes, at.Child("initContainers").Index(i))...)
	}
	for i := range spec.Containers {
		errs = append(errs, checkContainer(&spec.Containers[i], false, volumes, at.Child("containers").Index(i))...)
	}
	for i, patch := range spec.PatchContainers {
		at := at.Child("patchContainers").Index(i)
		errs = append(errs, checkMounts(patch.VolumeMounts, nil, volumes, at)...)
		errs = append(errs, checkEnv(patch.Env, at.Child("env"))...)
	}
	return errs
}

func checkContainer(c *v1beta1.SidecarContainer, init bool, volumes map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(c.Image) == "" {
		errs = append(errs, field.Required(at.Child("image"), ""))
	}
	if init && c.ResourcesPolicy != nil && !revision.Native(c) {
		errs = append(errs, field.Forbidden(at.Child("resourcesPolicy"), "only native sidecars among the init containers can have it"))
	}
	if !init && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		errs = append(errs, field.Forbidden(at.Child("restartPolicy"), "native sidecars are initContainers"))
	}
	errs = append(errs, checkEnv(c.Env, at.Child("env"))...)
	return append(errs, checkMounts(c.VolumeMounts, c.VolumeDevices, volumes, at)...)
}

// checkEmptyImages has a rule of Refit's CRDs; OpenKruise's do not have it. What exists already can still be changed. By its image it is
// known which of the two containers of a hot upgrade is idle: otherwise one with a faulty image would not be repaired.
func checkEmptyImages(set, old *v1beta1.SidecarSet) field.ErrorList {
	known := map[string]bool{}
	if old != nil {
		for _, c := range emptyImages(&old.Spec) {
			known[c.name] = true
		}
	}
	var errs field.ErrorList
	for _, c := range emptyImages(&set.Spec) {
		if !known[c.name] {
			errs = append(errs, field.Forbidden(c.at, "must be another image than image"))
		}
	}
	return errs
}

// emptyImages are the containers whose image is the one between hot upgrades too.
func emptyImages(spec *v1beta1.SidecarSetSpec) (found []containerName) {
	for _, list := range []struct {
		field      string
		containers []v1beta1.SidecarContainer
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			if s := &c.UpgradeStrategy; s.UpgradeType == v1beta1.HotUpgrade && s.HotUpgradeEmptyImage == c.Image && c.Image != "" {
				found = append(found, containerName{c.Name, field.NewPath("spec", list.field).Index(i).Child("upgradeStrategy", "hotUpgradeEmptyImage")})
			}
		}
	}
	return found
}

func checkEnv(list []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, env := range list {
		for _, message := range validation.IsRelaxedEnvVarName(env.Name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), env.Name, message))
		}
		if env.Value != "" && env.ValueFrom != nil {
			errs = append(errs, field.Invalid(at.Index(i).Child("valueFrom"), "", "cannot be given together with value"))
		}
	}
	return errs
}

// checkMounts: a volume that neither the SidecarSet has nor the pods are said to bring would have every pod refused.
func checkMounts(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice, volumes map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	taken := map[string]bool{}
	check := func(at *field.Path, name, key, where string) {
		if !volumes[name] {
			errs = append(errs, field.NotFound(at.Child("name"), name))
		}
		if where == "" {
			errs = append(errs, field.Required(at.Child(key), ""))
		} else if taken[path.Clean(where)] {
			errs = append(errs, field.Duplicate(at.Child(key), where))
		}
		taken[path.Clean(where)] = true
	}
	for i, mount := range mounts {
		check(at.Child("volumeMounts").Index(i), mount.Name, "mountPath", mount.MountPath)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("volumeMounts").Index(i).Child("subPathExpr"), mount.SubPathExpr, "cannot be given together with subPath"))
		}
	}
	for i, device := range devices {
		check(at.Child("volumeDevices").Index(i), device.Name, "devicePath", device.DevicePath)
	}
	return errs
}

// reservedPrefixes are of annotations and labels that say what has been injected.
var reservedPrefixes = []string{"kruise.io/sidecarset-", v1beta1.PrefixSidecarSetVersion, v1beta1.PrefixSidecarSetVersionAlt, "sidecarset.refit.dev/"}

func checkMetadata(spec *v1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	type key struct {
		name  string
		label bool
	}
	seen := map[key]bool{}
	for _, e := range metadata(spec) {
		for _, message := range validation.IsQualifiedName(strings.ToLower(e.key)) {
			errs = append(errs, field.Invalid(e.at, e.key, message))
		}
		if slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(e.key, prefix) }) {
			errs = append(errs, field.Forbidden(e.at, "the key is reserved for what SidecarSets have injected"))
		}
		if seen[key{e.key, e.label}] {
			errs = append(errs, field.Duplicate(e.at, e.key))
		}
		seen[key{e.key, e.label}] = true
		if e.label && selects(spec, e.key) {
			errs = append(errs, field.Forbidden(e.at, "the selector of the SidecarSet depends on this label"))
		}
	}
	for i, patch := range spec.PatchPodMetadata {
		errs = append(errs, metav1validation.ValidateLabels(patch.Labels, at.Index(i).Child("labels"))...)
	}
	for _, list := range [][]v1beta1.SidecarContainer{spec.InitContainers, spec.Containers} {
		for i := range list {
			if label := list[i].VersionLabel; label != "" && selects(spec, label) {
				errs = append(errs, field.Forbidden(field.NewPath("spec"), fmt.Sprintf("versionLabel %s of container %s: the selector of the SidecarSet depends on this label", label, list[i].Name)))
			}
		}
	}
	return errs
}

// selects reports whether the selector of pods depends on a label.
func selects(spec *v1beta1.SidecarSetSpec, key string) bool {
	if spec.Selector == nil {
		return false
	}
	if _, ok := spec.Selector.MatchLabels[key]; ok {
		return true
	}
	for _, r := range spec.Selector.MatchExpressions {
		if r.Key == key {
			return true
		}
	}
	return false
}
