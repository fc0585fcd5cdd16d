package workload

import (
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/workload"
)

// PodPart returns what InPlaceUpdatePolicies need of cached pods.
func PodPart() trim.Part { return trim.Part{Keep: workload.Keep, Bound: budget.Bound} }

var trimmer = trim.NewPods(PodPart())
