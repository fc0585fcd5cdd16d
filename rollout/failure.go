package rollout

import (
	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
)

// maxFailureReason and maxFailureMessage are what the CRDs allow of a PodFailure, in characters; here they limit bytes.
const (
	maxFailureReason  = 256
	maxFailureMessage = 1024
)

// BoundedFailure returns a failure with texts of the length that the CRDs allow. Otherwise one long message, which a daemon, a
// webhook or kubelet has written, would prevent every later write of the status.
func BoundedFailure(failure v1alpha1.PodFailure) v1alpha1.PodFailure {
	failure.Reason = foreign.Cut(failure.Reason, maxFailureReason)
	failure.Message = foreign.Cut(failure.Message, maxFailureMessage)
	return failure
}
