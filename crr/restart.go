package crr

import (
	"time"

	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/kubelet"
)

// overrides reports whether this request restarts a container even if its restart policy does not allow it.
func (p *planner) overrides() bool {
	return !p.options.SignalsOnly && podrules.OverridesRestartPolicy(p.request)
}

// skipsBackoff reports whether a restart for this request starts at once.
func (p *planner) skipsBackoff() bool {
	return !p.options.SignalsOnly && podrules.SkipsBackoff(p.request, p.options.RespectBackoff)
}

// delaysRestart reports whether kubelet would delay the next start after the end of this instance.
func delaysRestart(instance Instance, end time.Time) bool {
	return kubelet.DelaysRestart(instance.RestartCount, end.Sub(instance.StartedAt))
}
