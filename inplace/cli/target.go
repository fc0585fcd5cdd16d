package cli

import (
	"fmt"

	"github.com/refit-project/refit/internal/console"
)

// Kind is the kind of a target.
type Kind string

// KindPod is the only kind. The pods of a workload are updated by refit-manager, when its template is changed.
const KindPod Kind = "pod"

// Target is the object that a command changes, for example "pod/web".
type Target struct {
	Kind Kind
	Name string
}

// ParseTarget parses a target, for example "pod/web".
func ParseTarget(text string) (Target, error) {
	switch kind, name, ok := console.KindName(text); {
	case !ok:
		return Target{}, fmt.Errorf("%w: %q: want pod/NAME", console.ErrUsage, text)
	case console.IsPod(kind):
		return Target{Kind: KindPod, Name: name}, nil
	default:
		return Target{}, fmt.Errorf("%w: %q: want pod/NAME", console.ErrUsage, text)
	}
}
