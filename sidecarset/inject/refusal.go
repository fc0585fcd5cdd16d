package inject

import "fmt"

// Refusal says why a pod cannot be created: it breaks a rule of a SidecarSet, or it exceeds the limits of package foreign.
type Refusal struct {
	SidecarSet string // empty if it does not concern a single one
	Field      string // of the pod
	Message    string
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.SidecarSet == "" {
		return r.Field + ": " + r.Message
	}
	return fmt.Sprintf("SidecarSet %s: %s: %s", r.SidecarSet, r.Field, r.Message)
}

func refuse(set, field, format string, args ...any) error {
	return &Refusal{SidecarSet: set, Field: field, Message: fmt.Sprintf(format, args...)}
}
