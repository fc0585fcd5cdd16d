package jobplan

import (
	"fmt"
	"slices"

	"github.com/refit-project/refit/image"
)

// progress returns the progress of a running job.
func (t tally) progress() string {
	if t.status.Desired == 0 {
		return image.MessageRunning + "no progress"
	}
	return fmt.Sprintf("%sprogress %.1f%%", image.MessageRunning, 100*float64(t.status.Succeeded+t.status.Failed)/float64(t.status.Desired))
}

// details returns further information, or "".
func (t tally) details() string {
	switch {
	case t.status.Desired == 0:
		return "no node is selected"
	case t.why != "" && len(t.full) > 0:
		return clip(t.noRoom() + image.MessageSeparator + t.failures())
	case t.why != "":
		return clip(t.failures())
	}
	return t.noRoom()
}

func (t tally) failures() string {
	return fmt.Sprintf("%d of %d nodes failed, for example %s", t.status.Failed, t.status.Desired, t.why)
}

func (t tally) noRoom() string {
	if len(t.full) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d nodes wait until other ImagePullJobs have ended or are deleted, for example %s, which is the most there can be",
		len(t.full), t.status.Desired, slices.Min(t.full))
}

func join(message, details string) string {
	if details == "" {
		return message
	}
	return message + image.MessageSeparator + details
}
