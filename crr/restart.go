package crr

import (
	"time"

	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/kubelet"
)

// overrides reports whether this request is to bring a container back even where its restart policy forbids it.
func (p *planner) overrides() bool {
	return !p.options.SignalsOnly && podrules.OverridesRestartPolicy(p.request)
}

// skipsBackoff reports whether a restart for this request is to start at once.
func (p *planner) skipsBackoff() bool {
	return !p.options.SignalsOnly && podrules.SkipsBackoff(p.request, p.options.RespectBackoff)
}

// delaysRestart reports whether kubelet would delay the start after the end of this instance.
func delaysRestart(instance Instance, end time.Time) bool {
	return kubelet.DelaysRestart(instance.RestartCount, end.Sub(instance.StartedAt))
}
