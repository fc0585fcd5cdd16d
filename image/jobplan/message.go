package jobplan

import (
	"fmt"
	"slices"
	"strings"

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
	if t.status.Desired == 0 {
		return "no node is selected"
	}
	return clip(joined(t.noRoom(), t.waits(), t.failures()))
}

// atDeadline returns what the nodes report when the job ends at its deadline, or "". The failed ones come first, because
// the end of a long text is left out.
func (t tally) atDeadline() string {
	if t.status.Desired == 0 {
		return t.details()
	}
	return clip(joined(t.failures(), t.unended(), t.unbegun(), t.noRoom(), t.waits()))
}

// unended returns what the nodes report whose pull has begun and not ended, or "". The example is a node with a message, if there is one.
func (t tally) unended() string {
	if len(t.tried) == 0 {
		return ""
	}
	example := slices.Min(t.tried)
	if len(t.messages) > 0 {
		example = slices.Min(t.messages)
	}
	return fmt.Sprintf("%d of %d nodes have not ended, for example %s", len(t.tried), t.status.Desired, example)
}

func (t tally) unbegun() string {
	if len(t.unstarted) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d nodes were not begun within parallelism", len(t.unstarted), t.status.Desired)
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), image.MessageSeparator)
}

// waits returns why nodes have not begun to pull, or "".
func (t tally) waits() string {
	switch {
	case len(t.queued) > 0:
		return fmt.Sprintf("%d of %d nodes wait for other pulls, for example %s, which is the most there can be", len(t.queued), t.status.Desired, slices.Min(t.queued))
	case len(t.idle) > 0:
		return fmt.Sprintf("%d of %d nodes have not begun to pull, for example %s", len(t.idle), t.status.Desired, slices.Min(t.idle))
	}
	return ""
}

func (t tally) failures() string {
	if t.why == "" {
		return ""
	}
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
