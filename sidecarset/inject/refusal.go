package inject

import "fmt"

// Refusal is why a pod cannot be created: a rule of a SidecarSet that it breaks.
type Refusal struct {
	SidecarSet string
	Field      string // of the pod
	Message    string
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("SidecarSet %s: %s: %s", r.SidecarSet, r.Field, r.Message)
}

func refuse(set, field, format string, args ...any) error {
	return &Refusal{SidecarSet: set, Field: field, Message: fmt.Sprintf(format, args...)}
}
