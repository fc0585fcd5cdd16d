package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout"
)

// RefusedWrite says why the API server has refused to begin the update of a pod, as an admission policy can.
type RefusedWrite struct {
	Revision string // of the template
	Message  string
	// Until is when the write is tried again. Before that the pod counts as failed.
	Until time.Time
}

// failRefused sets that pods have failed whose update the API server has refused to begin. Otherwise such a pod would be the next one
// in each pass, and no other pod would be updated.
func (v *view) failRefused(refused map[types.UID]RefusedWrite) {
	for _, p := range v.pods {
		write, is := refused[p.UID]
		if !is || p.stage != outdated || p.excluded || p.failure != nil || write.Revision != v.decision.Status.UpdateRevision || !v.now.Before(write.Until) {
			continue
		}
		p.failure = &v1alpha1.PodFailure{Pod: p.Name, Reason: rollout.ReasonRefused, Message: write.Message}
		v.again(write.Until)
	}
}
