package jobplan_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// A job that makes no progress says what its nodes wait for, and not before that is of interest.
func TestAJobSaysWhatItWaitsForOnANode(t *testing.T) {
	t.Parallel()
	const none, first = "job is running, progress 0.0%", "job is running, progress 0.0%; 2 of 2 nodes have not begun to pull, for example node-0: "
	c := newCluster(t, 2, job())
	c.look()
	said := func() string {
		c.look()
		return c.job.Status.Message
	}
	if got := said(); got != none {
		t.Errorf("at first: %s", got)
	}
	if d := c.look(); !d.Again.Equal(now.Add(10 * time.Second)) {
		t.Errorf("again at %s", d.Again)
	}
	c.now = now.Add(10 * time.Second)
	if got := said(); got != first+"the daemon of the node has not reported the pull" {
		t.Errorf("without a report: %s", got)
	}
	c.answer(v1beta1.ImagePhaseWaiting, "")
	if got := said(); got != first+"other pulls come first" {
		t.Errorf("behind others: %s", got)
	}
	c.answer(v1beta1.ImagePhaseWaiting, "503")
	if got := said(); got != none {
		t.Errorf("between two attempts: %s", got)
	}
	c.answer(v1beta1.ImagePhasePulling, "")
	if got := said(); got != none {
		t.Errorf("pulling: %s", got)
	}
}
