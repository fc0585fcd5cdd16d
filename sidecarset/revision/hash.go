package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/refit-project/refit/api/v1beta1"
)

// Hashes of the containers of a SidecarSet. They do not cover volumes, pull secrets and metadata.
type Hashes struct {
	// Full is of all fields that OpenKruise knows, WithoutImage of all but the images.
	Full, WithoutImage string
}

// HashesOf are those of a spec. They are equal to OpenKruise's, so that pods can be handed over in either direction.
func HashesOf(spec *v1beta1.SidecarSetSpec) Hashes {
	return Hashes{Full: hash(spec, false), WithoutImage: hash(spec, true)}
}

// hashedContainer is the part of a container that is hashed, field by field in OpenKruise's order.
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
			content["initContainers"] = hashed(spec.InitContainers, withoutImage) // all of them, also those that run once
			break
		}
	}
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // types of the API can always be encoded
	}
	sum := sha256.Sum256(text)
	return rand.SafeEncodeString(hex.EncodeToString(sum[:]))
}

// hashed keeps nil nil: the hash tells it from empty.
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
