package set

import (
	"fmt"
	"strings"

	"github.com/refit-project/refit/cli"
)

// Kind is what a target is.
type Kind string

// KindPod is the only kind so far. Workloads are to come: their pods are then updated one after another.
const KindPod Kind = "pod"

// Target is what a command is about, as "pod/web".
type Target struct {
	Kind Kind
	Name string
}

// ParseTarget reads the text form.
func ParseTarget(text string) (Target, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return Target{}, fmt.Errorf("%w: %q: want pod/NAME", cli.ErrUsage, text)
	}
	switch strings.ToLower(kind) {
	case "pod", "pods", "po":
		return Target{Kind: KindPod, Name: name}, nil
	default:
		return Target{}, fmt.Errorf("%w: %q: only pods can be updated so far, as pod/NAME", cli.ErrUsage, text)
	}
}
