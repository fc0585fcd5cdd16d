package control

import (
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/rollout/budget"
)

// PodPart returns what RestartRollouts need of cached pods.
func PodPart() trim.Part { return trim.Part{Keep: budget.Keep, Bound: budget.Bound} }

var trimmer = trim.NewPods(PodPart())
