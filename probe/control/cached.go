package control

import (
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/probe/podprobe"
)

// PodPart returns what PodProbeMarkers need of cached pods.
func PodPart() trim.Part { return trim.Part{Keep: podprobe.Keep, Bound: podprobe.Bound} }
