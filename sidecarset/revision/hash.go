package revision

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/defaults"
)

// Hashes are hashes of the containers of a SidecarSet. They do not cover volumes, pull secrets and metadata.
type Hashes struct {
	// Full covers all fields that OpenKruise knows. WithoutImage covers the same fields except images.
	Full, WithoutImage string
}

// HashesOf returns the hashes of a spec with its defaults. They are equal to OpenKruise's, so that a pod can change
// between OpenKruise and Refit in either direction.
func HashesOf(spec *v1beta1.SidecarSetSpec) Hashes { return AsWritten(defaults.Normal(spec)) }

// AsWritten returns the hashes of a spec without adding defaults. Pods injected by an earlier version of Refit carry them.
func AsWritten(spec *v1beta1.SidecarSetSpec) Hashes {
	return Hashes{Full: hash(spec, false), WithoutImage: hash(spec, true)}
}

// hashedContainer is the hashed part of a container, field by field in OpenKruise's order.
type hashedContainer struct {
	corev1.Container `json:",inline"`

	PodInjectPolicy         v1beta1.PodInjectPolicy    `json:"podInjectPolicy,omitempty"`
	UpgradeStrategy         hashedUpgradeStrategy      `json:"upgradeStrategy"`
	ShareVolumePolicy       v1beta1.ShareVolumePolicy  `json:"shareVolumePolicy"`
	ShareVolumeDevicePolicy *v1beta1.ShareVolumePolicy `json:"shareVolumeDevicePolicy,omitempty"`
	TransferEnv             []v1beta1.TransferEnvVar   `json:"transferEnv,omitempty"`
	ResourcesPolicy         *v1beta1.ResourcesPolicy   `json:"resourcesPolicy,omitempty"`
}

type hashedUpgradeStrategy struct {
	UpgradeType          v1beta1.UpgradeType `json:"upgradeType,omitempty"`
	HotUpgradeEmptyImage string              `json:"hotUpgradeEmptyImage,omitempty"`
}

func hash(spec *v1beta1.SidecarSetSpec, withoutImage bool) string {
	content := map[string]any{"containers": hashed(spec.Containers, withoutImage)}
	for i := range spec.InitContainers {
		if Native(&spec.InitContainers[i]) {
			content["initContainers"] = hashed(spec.InitContainers, withoutImage) // all of them, including those that run once
			break
		}
	}
	sum := sha256.Sum256(must.JSON(content))
	return rand.SafeEncodeString(hex.EncodeToString(sum[:]))
}

// hashed returns nil for nil, because the hash distinguishes nil from empty.
func hashed(containers []v1beta1.SidecarContainer, withoutImage bool) []hashedContainer {
	if containers == nil {
		return nil
	}
	list := make([]hashedContainer, len(containers))
	for i := range containers {
		c := &containers[i]
		list[i] = hashedContainer{
			Container: c.Container, PodInjectPolicy: c.PodInjectPolicy, ShareVolumePolicy: c.ShareVolumePolicy,
			ShareVolumeDevicePolicy: c.ShareVolumeDevicePolicy, TransferEnv: c.TransferEnv, ResourcesPolicy: c.ResourcesPolicy,
			UpgradeStrategy: hashedUpgradeStrategy{
				UpgradeType: c.UpgradeStrategy.UpgradeType, HotUpgradeEmptyImage: c.UpgradeStrategy.HotUpgradeEmptyImage,
			},
		}
		if withoutImage {
			list[i].Image = ""
		}
	}
	return list
}

// Native reports whether an init container is a native sidecar, which runs beside the other containers (KEP-753).
func Native(container *v1beta1.SidecarContainer) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
