package clustercheck

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// settled is how long the deletion of a job may take to reach a daemon: from the API server to the manager, to the
// NodeImage, to the daemon.
const settled = 10 * time.Second

// pullJob is the life of one ImagePullJob.
type pullJob struct {
	created entry.Write
	deleted *entry.Write
}

// pulls checks I9.
func (c check) pulls() {
	jobs := c.pullJobs()
	for _, call := range c.Calls {
		if call.Method != entry.MethodPull {
			continue
		}
		c.Report.Totals.Pulls++
		wanting := jobs[call.Image]
		if len(wanting) == 0 || slices.ContainsFunc(wanting, func(j *pullJob) bool { return c.wants(j, call) }) {
			continue // an image that no job of the records names may be of a job that is older than they are
		}
		last := wanting[len(wanting)-1]
		proof := []entry.Line{last.created.Line, call.Line}
		if last.deleted != nil {
			proof = append(proof, last.deleted.Line)
		}
		c.Violate("I9", "job "+last.created.Namespace+"/"+last.created.Name, fmt.Sprintf("a pull of %s began although no job that wants it was there", call.Image), proof...)
	}
	for _, all := range jobs {
		for _, job := range all {
			if job.deleted != nil && slices.ContainsFunc(c.Calls, func(call entry.Call) bool { return job.failed(call) }) {
				c.Report.Totals.Cancelled++
			}
		}
	}
}

// wants reports whether the job was there when the pull began, or its deletion could not be known yet.
func (c check) wants(j *pullJob, pull entry.Call) bool {
	return !j.created.Received.After(pull.Begin) &&
		(j.deleted == nil || entry.Unimpeded(c.Faults, "", j.deleted.Done, pull.Begin) <= settled)
}

// failed reports whether the pull was one for the job, and failed before the job was deleted.
func (j *pullJob) failed(pull entry.Call) bool {
	return pull.Method == entry.MethodPull && pull.Image == j.created.Pull.Spec.Image && pull.Code != "OK" &&
		pull.Begin.After(j.created.Received) && pull.End.Before(j.deleted.Received)
}

// pullJobs are the jobs by image, in the order of the audit log.
func (c check) pullJobs() map[string][]*pullJob {
	jobs := map[string][]*pullJob{}
	byName := map[string]*pullJob{}
	for i := range c.Writes {
		w := &c.Writes[i]
		if w.Resource != entry.PullResource || w.Subresource != "" {
			continue
		}
		name := w.Namespace + "/" + w.Name
		switch {
		case w.Verb == "create" && w.Pull != nil:
			byName[name] = &pullJob{created: *w}
			jobs[w.Pull.Spec.Image] = append(jobs[w.Pull.Spec.Image], byName[name])
		case w.Verb == "delete" && w.Stored() && byName[name] != nil && byName[name].deleted == nil:
			byName[name].deleted = w
		}
	}
	return jobs
}
