package image

import "strings"

// The beginnings of messages of an ImagePullJob, in the words of OpenKruise, which clients know. Further information
// follows after the separator.
const (
	MessageRunning   = "job is running, "
	MessageCompleted = "job has completed"
	MessageDeadline  = "job exceeds activeDeadlineSeconds"
	MessageSeparator = "; "
)

// Details returns the further information in the message of an ImagePullJob, without its phase and progress, or "".
func Details(message string) string {
	if !strings.HasPrefix(message, MessageRunning) {
		return message
	}
	_, details, _ := strings.Cut(message, MessageSeparator)
	return details
}
