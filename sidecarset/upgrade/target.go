package upgrade

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/hotupgrade"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Target is the version of a SidecarSet that pods are to have. It is not changed after it has been made.
type Target struct {
	annotation.Version
	// Number of the version, for hot upgrades; the resource version of the SidecarSet, as OpenKruise has it.
	Number uint64

	spec     *v1beta1.SidecarSetSpec
	sidecars []sidecar
	history  History
}

// sidecar is a container that the SidecarSet keeps running.
type sidecar struct {
	*v1beta1.SidecarContainer
	native bool
}

func (s *sidecar) hot() bool { return s.UpgradeStrategy.UpgradeType == v1beta1.HotUpgrade }

// hot reports whether a sidecar is upgraded hot.
func (t *Target) hot() bool {
	return slices.ContainsFunc(t.sidecars, func(s sidecar) bool { return s.hot() })
}

// containers are its names in a pod.
func (s *sidecar) containers() []string {
	if s.hot() {
		names := hotupgrade.Containers(s.Name)
		return names[:]
	}
	return []string{s.Name}
}

// NewTarget makes the target of a SidecarSet whose spec has this revision. History are its revisions.
func NewTarget(set *v1beta1.SidecarSet, revisionName string, number uint64, history History) *Target {
	t := &Target{spec: &set.Spec, Number: number, history: history, Version: annotation.Version{
		SidecarSet: set.Name, Revision: revisionName, Hashes: revision.HashesOf(&set.Spec), Sidecars: annotation.Sidecars(&set.Spec),
	}}
	for i := range set.Spec.InitContainers {
		if c := &set.Spec.InitContainers[i]; revision.Native(c) {
			t.sidecars = append(t.sidecars, sidecar{c, true})
		}
	}
	for i := range set.Spec.Containers {
		t.sidecars = append(t.sidecars, sidecar{&set.Spec.Containers[i], false})
	}
	return t
}

// Images are those that pods get by an update, sorted, without the ones of single pods.
func (t *Target) Images() []string {
	var images []string
	for i := range t.sidecars {
		images = append(images, t.sidecars[i].Image)
		if t.sidecars[i].hot() {
			images = append(images, t.sidecars[i].UpgradeStrategy.HotUpgradeEmptyImage)
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// image is what the container is to run in this pod.
func (t *Target) image(pod *corev1.Pod, s *sidecar) string {
	if slices.Contains(t.spec.InjectionStrategy.AllowedPodOverrides, v1beta1.OverrideImage) {
		return cmp.Or(pod.Annotations[v1beta1.PrefixSidecarImage+s.Name], s.Image)
	}
	return s.Image
}

// ownResources reports whether the resources of the container are not those in the SidecarSet.
func (t *Target) ownResources(pod *corev1.Pod, s *sidecar) bool {
	if s.ResourcesPolicy != nil {
		return true
	}
	_, overridden := pod.Annotations[v1beta1.PrefixSidecarResources+s.Name]
	return overridden && slices.Contains(t.spec.InjectionStrategy.AllowedPodOverrides, v1beta1.OverrideResources)
}

// find is the container that was injected into a pod for the sidecar; nil if there is none. One that the pod has of its own
// is left alone, whatever its name.
func (s *sidecar) find(pod *corev1.PodSpec, name string) *corev1.Container {
	if container := s.named(pod, name); container != nil && v1beta1.IsInjected(container) {
		return container
	}
	return nil
}

// named is the container of that name, in the list of its kind.
func (s *sidecar) named(pod *corev1.PodSpec, name string) *corev1.Container {
	list := pod.Containers
	if s.native {
		list = pod.InitContainers
	}
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
