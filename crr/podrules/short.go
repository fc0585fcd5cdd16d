package podrules

import "github.com/refit-project/refit/internal/foreign"

// maxMessage limits messages, in bytes.
const maxMessage = 1 << 10

// Short shortens a message for the status of a request. Errors of the container runtime and of preStop hooks, and
// kubelet's reasons for a waiting container, contain text from others.
func Short(message string) string { return foreign.Shorten(message, maxMessage) }
