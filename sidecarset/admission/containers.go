package admission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/podrules"
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

// checkPods checks the rules of the API server for the parts of pods. Other fields of an existing SidecarSet that
// breaks them can still be changed.
func checkPods(set, old *v1beta1.SidecarSet) field.ErrorList {
	spec, at := defaults.Completed(&set.Spec), field.NewPath("spec")
	if old != nil {
		was := defaults.Completed(&old.Spec)
		if equality.Semantic.DeepEqual(spec.Containers, was.Containers) && equality.Semantic.DeepEqual(spec.InitContainers, was.InitContainers) &&
			equality.Semantic.DeepEqual(spec.Volumes, was.Volumes) {
			return nil
		}
	}
	errs := podrules.Volumes(spec.Volumes, at.Child("volumes"))
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		errs = append(errs, podrules.Container(&c.Container, !revision.Native(c), at.Child("initContainers").Index(i))...)
	}
	for i := range spec.Containers {
		errs = append(errs, podrules.Container(&spec.Containers[i].Container, false, at.Child("containers").Index(i))...)
	}
	return errs
}

// CheckPin returns the errors of spec.injectionStrategy.revision: the revision must exist, unless missingPolicy says
// what to do if it does not. history holds the revisions of the SidecarSet. Other fields can be changed even if the
// revision is gone.
func CheckPin(set, old *v1beta1.SidecarSet, history []*appsv1.ControllerRevision) field.ErrorList {
	if !Pins(set, old) || revision.Pinned(set, history) != nil {
		return nil
	}
	pin := set.Spec.InjectionStrategy.Revision
	at := field.NewPath("spec", "injectionStrategy", "revision")
	if pin.RevisionName != nil && *pin.RevisionName != "" {
		return field.ErrorList{field.NotFound(at.Child("revisionName"), *pin.RevisionName)}
	}
	version := ""
	if pin.CustomVersion != nil {
		version = *pin.CustomVersion
	}
	return field.ErrorList{field.NotFound(at.Child("customVersion"), version)}
}

// Pins reports whether the SidecarSet names a revision that must exist, and that the old version does not name.
func Pins(set, old *v1beta1.SidecarSet) bool {
	pin := set.Spec.InjectionStrategy.Revision
	if pin == nil || pin.MissingPolicy != "" {
		return false
	}
	if old == nil || old.Spec.InjectionStrategy.Revision == nil {
		return true
	}
	was := old.Spec.InjectionStrategy.Revision
	return !equality.Semantic.DeepEqual(pin.RevisionName, was.RevisionName) || !equality.Semantic.DeepEqual(pin.CustomVersion, was.CustomVersion)
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

// checkEmptyImages checks a rule of Refit's CRDs that OpenKruise's CRDs lack. An existing SidecarSet that breaks it can
// still be changed. The image shows which of the two containers of a hot upgrade is idle; without this rule a container
// with a faulty image would not be repaired.
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

// emptyImages returns the containers whose image is equal to their empty image for hot upgrades.
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

// checkMounts checks that all mounted volumes are in the SidecarSet or declared to be in the pods. Otherwise the API
// server would refuse every pod.
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

// reservedPrefixes are the prefixes of annotations and labels that record what has been injected.
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

// selects reports whether the pod selector depends on a label.
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
