package upgrade

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/hotupgrade"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Target is the version of a SidecarSet that pods should have. It is immutable.
type Target struct {
	annotation.Version
	// Number is the number of the version for hot upgrades: the resource version of the SidecarSet, like in OpenKruise.
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

// hot reports whether any sidecar has hot upgrades.
func (t *Target) hot() bool {
	return slices.ContainsFunc(t.sidecars, func(s sidecar) bool { return s.hot() })
}

// containers returns the names of the sidecar's containers in a pod.
func (s *sidecar) containers() []string {
	if s.hot() {
		names := hotupgrade.Containers(s.Name)
		return names[:]
	}
	return []string{s.Name}
}

// NewTarget returns the target for a SidecarSet whose spec has this revision. history has its revisions.
func NewTarget(set *v1beta1.SidecarSet, revisionName string, number uint64, history History) *Target {
	spec := defaults.Normal(&set.Spec)
	t := &Target{spec: spec, Number: number, history: history, Version: annotation.Version{
		SidecarSet: set.Name, Revision: revisionName, Hashes: revision.HashesOf(spec), Sidecars: annotation.Sidecars(spec),
	}}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; revision.Native(c) {
			t.sidecars = append(t.sidecars, sidecar{c, true})
		}
	}
	for i := range spec.Containers {
		t.sidecars = append(t.sidecars, sidecar{&spec.Containers[i], false})
	}
	return t
}

// has reports whether the pod claims to match the target.
func (t *Target) has(injected *annotation.Injected) bool {
	return injected != nil && t.is(injected.Hash)
}

// is reports whether a hash from a pod is the hash of the target.
func (t *Target) is(hash string) bool { return t.history.full(hash) == t.Hashes.Full }

// Images returns the sorted images that pods get by an update, without images of single pods.
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

// image returns the image that the container should run in this pod.
func (t *Target) image(pod *corev1.Pod, s *sidecar) string {
	if slices.Contains(t.spec.InjectionStrategy.AllowedPodOverrides, v1beta1.OverrideImage) {
		return cmp.Or(pod.Annotations[v1beta1.PrefixSidecarImage+s.Name], s.Image)
	}
	return s.Image
}

// ownResources reports whether the resources of the container are not taken from the SidecarSet.
func (t *Target) ownResources(pod *corev1.Pod, s *sidecar) bool {
	if s.ResourcesPolicy != nil {
		return true
	}
	_, overridden := pod.Annotations[v1beta1.PrefixSidecarResources+s.Name]
	return overridden && slices.Contains(t.spec.InjectionStrategy.AllowedPodOverrides, v1beta1.OverrideResources)
}

// find returns the container that was injected into a pod for the sidecar, or nil. It ignores the pod's own containers,
// whatever their names.
func (s *sidecar) find(pod *corev1.PodSpec, name string) *corev1.Container {
	if container := s.named(pod, name); container != nil && v1beta1.IsInjected(container) {
		return container
	}
	return nil
}

// named returns the container with this name in the list of its kind, or nil.
func (s *sidecar) named(pod *corev1.PodSpec, name string) *corev1.Container {
	if s.native {
		return kubelet.ContainerIn(pod.InitContainers, name)
	}
	return kubelet.ContainerIn(pod.Containers, name)
}
