// Package defaults sets the defaults of a SidecarSet. They are equal to those that OpenKruise stores at admission,
// because the hashes that pods carry are computed from a spec with defaults. For the same reason, fields that
// OpenKruise leaves unset, such as fields of startup probes, stay unset.
package defaults

import (
	"reflect"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
)

// Completed returns a copy of a spec with its defaults.
func Completed(spec *v1beta1.SidecarSetSpec) *v1beta1.SidecarSetSpec {
	completed := spec.DeepCopy()
	Complete(completed)
	return completed
}

// Normal returns a copy of a spec in the form in which specs are hashed and compared: with its defaults, and without
// values that mean the same as no value. The CRD of an earlier version of Refit set the service of gRPC probes to "".
func Normal(spec *v1beta1.SidecarSetSpec) *v1beta1.SidecarSetSpec {
	normal := Completed(spec)
	for _, list := range [][]v1beta1.SidecarContainer{normal.InitContainers, normal.Containers} {
		for i := range list {
			for _, probe := range []*corev1.Probe{list[i].LivenessProbe, list[i].ReadinessProbe, list[i].StartupProbe} {
				if probe != nil && probe.GRPC != nil && probe.GRPC.Service != nil && *probe.GRPC.Service == "" {
					probe.GRPC.Service = nil
				}
			}
		}
	}
	return normal
}

// Complete sets the defaults of a spec. It changes nothing in a spec that has them.
func Complete(spec *v1beta1.SidecarSetSpec) {
	initial(&spec.UpdateStrategy.Type, v1beta1.SidecarSetRollingUpdate)
	initialTo(&spec.UpdateStrategy.MaxUnavailable, intstr.FromInt32(1))
	initialTo(&spec.UpdateStrategy.Partition, intstr.FromInt32(0))
	initialTo(&spec.RevisionHistoryLimit, 10)
	if pin := spec.InjectionStrategy.Revision; pin != nil {
		initial(&pin.Policy, v1beta1.RevisionAlways)
	}
	for i := range spec.PatchPodMetadata {
		initial(&spec.PatchPodMetadata[i].PatchPolicy, v1beta1.PatchRetain)
	}
	for i := range spec.InitContainers {
		completeSidecar(&spec.InitContainers[i], v1beta1.AfterAppContainer)
	}
	for i := range spec.Containers {
		completeSidecar(&spec.Containers[i], v1beta1.BeforeAppContainer)
	}
	for i := range spec.Volumes {
		completeVolume(&spec.Volumes[i].VolumeSource)
	}
}

func initial[T comparable](value *T, standard T) {
	var none T
	if *value == none {
		*value = standard
	}
}

func initialTo[T any](value **T, standard T) {
	if *value == nil {
		*value = &standard
	}
}

func completeSidecar(c *v1beta1.SidecarContainer, policy v1beta1.PodInjectPolicy) {
	initial(&c.PodInjectPolicy, policy)
	initial(&c.UpgradeStrategy.UpgradeType, v1beta1.ColdUpgrade)
	initial(&c.ShareVolumePolicy.Type, v1beta1.ShareVolumeDisabled)
	for i := range c.TransferEnv {
		if from := c.TransferEnv[i].SourceContainerNameFrom; from != nil && from.FieldRef != nil {
			initial(&from.FieldRef.APIVersion, "v1")
		}
	}
	completeContainer(&c.Container)
}

func completeContainer(c *corev1.Container) {
	initial(&c.ImagePullPolicy, PullPolicy(c.Image))
	initial(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	initial(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		initial(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			completeField(from.FieldRef)
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	completeProbe(c.LivenessProbe)
	completeProbe(c.ReadinessProbe)
	if c.Lifecycle != nil {
		completeHook(c.Lifecycle.PostStart)
		completeHook(c.Lifecycle.PreStop)
	}
}

// PullPolicy returns the default pull policy of an image reference: Always if the tag is latest or missing.
func PullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	tagged, hasTag := named.(reference.Tagged)
	_, hasDigest := named.(reference.Digested)
	if hasTag && tagged.Tag() == "latest" || !hasTag && !hasDigest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func completeField(field *corev1.ObjectFieldSelector) {
	if field != nil {
		initial(&field.APIVersion, "v1")
	}
}

// roundUp rounds quantities up to a thousandth, the smallest amount.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

func completeProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	initial(&probe.TimeoutSeconds, 1)
	initial(&probe.PeriodSeconds, 10)
	initial(&probe.SuccessThreshold, 1)
	initial(&probe.FailureThreshold, 3)
	completeHTTP(probe.HTTPGet)
}

func completeHook(hook *corev1.LifecycleHandler) {
	if hook != nil {
		completeHTTP(hook.HTTPGet)
	}
}

func completeHTTP(get *corev1.HTTPGetAction) {
	if get != nil {
		initial(&get.Path, "/")
		initial(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func completeVolume(v *corev1.VolumeSource) {
	if reflect.ValueOf(*v).IsZero() {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	const mode = corev1.ConfigMapVolumeSourceDefaultMode // the same for all kinds of volumes
	if v.HostPath != nil {
		initialTo(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		initialTo(&v.Secret.DefaultMode, mode)
	}
	if v.ConfigMap != nil {
		initialTo(&v.ConfigMap.DefaultMode, mode)
	}
	if v.DownwardAPI != nil {
		initialTo(&v.DownwardAPI.DefaultMode, mode)
		completeFiles(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		initialTo(&v.Projected.DefaultMode, mode)
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if source.DownwardAPI != nil {
				completeFiles(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				initialTo(&source.ServiceAccountToken.ExpirationSeconds, 3600)
			}
		}
	}
}

func completeFiles(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		completeField(items[i].FieldRef)
	}
}
