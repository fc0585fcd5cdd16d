package manager

import (
	crrcontrol "github.com/refit-project/refit/crr/control"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/manager/callers"
	probecontrol "github.com/refit-project/refit/probe/control"
	rolloutcontrol "github.com/refit-project/refit/rollout/control"
	"github.com/refit-project/refit/rollout/control/workload"
	sidecarsetcontrol "github.com/refit-project/refit/sidecarset/control"
)

// cachedPods returns what the cache keeps of pods: what the enabled features need.
func cachedPods(cfg Config) *trim.Pods {
	var parts []trim.Part
	for _, feature := range []struct {
		on   bool
		part func() trim.Part
	}{
		{cfg.RefusePods, callers.PodPart},
		{cfg.ContainerRecreateRequests, crrcontrol.PodPart},
		{cfg.RestartRollouts, rolloutcontrol.PodPart},
		{cfg.InPlaceUpdates, workload.PodPart},
		{cfg.SidecarSetRollout, sidecarsetcontrol.PodPart},
		{cfg.PodProbes, probecontrol.PodPart},
	} {
		if feature.on {
			parts = append(parts, feature.part())
		}
	}
	return trim.NewPods(parts...)
}
