package clustercheck

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// settled is how long the deletion of a job may take to reach a daemon: from the API server to the manager, to the
// NodeImage, to the daemon.
const settled = 10 * time.Second

// slow is how long the API server may take for a write.
const slow = time.Second

// older is for how long after the begin of the records a pull may be for a job that was deleted before.
const older = time.Minute

// pullJob is the life of one ImagePullJob.
type pullJob struct {
	created entry.Write
	last    entry.Write // that shows its status
	deleted *entry.Write
	unsure  bool // a later write of its status may have taken place
}

// pulls checks I9.
func (c check) pulls() {
	jobs, faults := c.pullJobs(), append(c.slowNodeImages(), c.Faults...)
	for _, call := range c.Calls {
		if call.Method != entry.MethodPull {
			continue
		}
		c.Report.Totals.Pulls++
		wanting := jobs[call.Image]
		if slices.ContainsFunc(wanting, func(j *pullJob) bool { return wants(j, call, faults) }) {
			continue
		}
		if len(wanting) == 0 {
			if call.Begin.After(c.begin().Add(older)) {
				c.Violate("I9", "image "+call.Image, "is pulled, and no job has ever wanted it", call.Line)
			}
			continue
		}
		last := wanting[len(wanting)-1]
		proof := []entry.Line{last.created.Line, call.Line}
		if last.deleted != nil {
			proof = append(proof, last.deleted.Line)
		}
		c.Violate("I9", "job "+last.created.Namespace+"/"+last.created.Name, fmt.Sprintf("a pull of %s began although no job that wants it was there", call.Image), proof...)
	}
	c.honest(jobs)
	for _, all := range jobs {
		for _, job := range all {
			if job.deleted != nil && slices.ContainsFunc(c.Calls, func(call entry.Call) bool { return job.failed(call) }) {
				c.Report.Totals.Cancelled++
			}
		}
	}
}

// honest checks I14: a job counts a node only after the runtime has pulled there, and it succeeds where the image is to be
// had.
func (c check) honest(jobs map[string][]*pullJob) {
	for image, all := range jobs {
		there := slices.ContainsFunc(c.Calls, func(call entry.Call) bool { return pulled(call, image) })
		for _, job := range all {
			if job.created.Pull.Spec.ImagePullPolicy != v1beta1.PullAlways {
				continue // what is on the node is not pulled
			}
			c.counted(image, job)
			end := c.End
			if job.deleted != nil {
				end = job.deleted.Received
			}
			took := entry.Unimpeded(c.Faults, "", job.created.Received, end)
			if last := job.last.Pull.Status; there && !job.unsure && took > c.Options.Patience && (last.CompletionTime == nil || last.Succeeded < last.Desired) {
				c.Violate("I14", "job "+job.created.Namespace+"/"+job.created.Name, fmt.Sprintf("%d of %d nodes have succeeded after %s, not counting faults, and the image is to be had",
					last.Succeeded, last.Desired, took.Round(time.Millisecond)), job.created.Line, job.last.Line)
			}
		}
	}
}

// counted checks the nodes that a job calls done.
func (c check) counted(image string, job *pullJob) {
	status := job.last.Pull.Status
	nodes := map[string]bool{} // each node has a record of its own
	for _, call := range c.Calls {
		if pulled(call, image) && !call.End.Before(job.created.Received) && call.Begin.Before(job.last.Done) {
			nodes[call.Record] = true
		}
	}
	if int(status.Succeeded) > len(nodes) {
		c.Violate("I14", "job "+job.created.Namespace+"/"+job.created.Name,
			fmt.Sprintf("%d nodes are called done, and on %d the image was pulled", status.Succeeded, len(nodes)), job.created.Line, job.last.Line)
	}
}

// wants reports whether the job was there when the pull began, or its deletion could not be known yet.
func wants(j *pullJob, pull entry.Call, faults []entry.Fault) bool {
	return !j.created.Received.After(pull.Begin) &&
		(j.deleted == nil || entry.Unimpeded(faults, "", j.deleted.Done, pull.Begin) <= settled)
}

// slowNodeImages are the times in which the API server took long for a write of what nodes are to pull: those do not count.
func (c check) slowNodeImages() []entry.Fault {
	var faults []entry.Fault
	for _, w := range c.Writes {
		if w.Resource == entry.NodeImageResource && w.Done.Sub(w.Received) > slow {
			faults = append(faults, entry.Fault{Kind: "slow write", Begin: w.Received, End: w.Done, Impedes: true})
		}
	}
	return faults
}

// pulled reports whether the call has brought the image.
func pulled(call entry.Call, image string) bool {
	return call.Method == entry.MethodPull && call.Image == image && call.Code == "OK"
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
	unanswered := map[string]entry.Write{} // creations that may have taken place
	add := func(name string, created, last entry.Write) {
		byName[name] = &pullJob{created: created, last: last}
		jobs[created.Pull.Spec.Image] = append(jobs[created.Pull.Spec.Image], byName[name])
	}
	for i := range c.Writes {
		w := &c.Writes[i]
		if w.Resource != entry.PullResource {
			continue
		}
		name := w.Namespace + "/" + w.Name
		switch {
		case w.Subresource != "":
			created, found := unanswered[name]
			if job := byName[name]; job != nil && w.Pull != nil {
				job.last, job.unsure = *w, false
			} else if job != nil && w.Unsure() {
				job.unsure = true
			} else if found && w.Pull != nil {
				created.Pull = w.Pull // its status shows that it was created
				add(name, created, *w)
			}
		case w.Verb == "create" && w.Pull != nil:
			add(name, *w, *w)
		case w.Verb == "create" && w.Unsure():
			unanswered[name] = *w
		case w.Verb == "delete" && w.Stored() && byName[name] != nil && byName[name].deleted == nil:
			byName[name].deleted = w
		}
	}
	return jobs
}
