package history

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
)

// terminal checks I3.
func (c *checker) terminal() {
	for _, r := range c.requests {
		end := r.terminal()
		if end == nil {
			continue
		}
		for _, v := range r.versions {
			if revision(v.Request.ResourceVersion) <= revision(end.Request.ResourceVersion) ||
				equality.Semantic.DeepEqual(v.Request.Status, end.Request.Status) {
				continue
			}
			c.violate("I3", "request "+r.String(), "its status changed after it had ended", end.Line, v.Line)
			break
		}
	}
}

// success checks I4.
func (c *checker) success() {
	for _, r := range c.requests {
		end := r.terminal()
		if end == nil {
			continue
		}
		states := end.Request.Status.ContainerRecreateStates
		if end.Request.Status.Message == "" {
			for _, spec := range r.spec().Containers {
				if !slices.ContainsFunc(states, func(s v1beta1.ContainerRecreateRequestRecreateState) bool {
					return s.Name == spec.Name && s.Phase == v1beta1.ContainerRecreateRequestSucceeded
				}) {
					c.violate("I4", "request "+r.String(), "succeeded although container "+spec.Name+" did not", end.Line)
				}
			}
		}
		for _, state := range states {
			if state.Phase == v1beta1.ContainerRecreateRequestSucceeded {
				c.recreated(r, state, r.succeeded(state.Name))
			}
		}
	}
}

// succeeded is the first version that calls the container recreated.
func (r *request) succeeded(container string) Write {
	for _, v := range r.versions {
		for _, state := range v.Request.Status.ContainerRecreateStates {
			if state.Name == container && state.Phase == v1beta1.ContainerRecreateRequestSucceeded {
				return v
			}
		}
	}
	return *r.terminal()
}

// believed is how old the daemon's picture of the pod may be when its verdict arrives.
const believed = 5 * time.Second

func (c *checker) recreated(r *request, state v1beta1.ContainerRecreateRequestRecreateState, verdict Write) {
	p := c.pods[r.podUID]
	subject := fmt.Sprintf("request %s container %s", r, state.Name)
	if p == nil {
		c.violate("I4", subject, "succeeded, but there is no such pod", verdict.Line)
		return
	}
	up := time.Duration(0)
	if strategy := r.spec().Strategy; strategy != nil {
		up = time.Duration(strategy.MinStartedSeconds) * time.Second
	}
	c.newInstance(p, subject, state, verdict, up)
	var seen []Line
	for n, w := range p.statuses {
		superseded := n+1 < len(p.statuses) && p.statuses[n+1].Received.Before(verdict.Received.Add(-believed))
		if w.Received.After(verdict.Done) || superseded {
			continue
		}
		for _, status := range slices.Concat(w.Pod.Status.ContainerStatuses, w.Pod.Status.InitContainerStatuses) {
			if status.Name != state.Name {
				continue
			}
			if replaced(status, state.ContainerID) {
				return
			}
			seen = append(seen, w.Line)
		}
	}
	unsure := slices.ContainsFunc(p.unsure, func(w Write) bool {
		return !w.Done.Before(r.created.Received) && w.Received.Before(verdict.Received)
	})
	if !unsure {
		c.violate("I4", subject, "succeeded, but kubelet reported no other container, running and ready", append(seen, verdict.Line)...)
	}
}

func replaced(status corev1.ContainerStatus, old string) bool {
	return status.Ready && status.State.Running != nil && bareID(status.ContainerID) != bareID(old)
}

// newInstance looks in the application's log for what ran at the time of the verdict. That is one of two when a start
// or a stop lies beside it.
func (c *checker) newInstance(p *pod, subject string, state v1beta1.ContainerRecreateRequestRecreateState, verdict Write, up time.Duration) {
	instances := p.instances[state.Name]
	if len(instances) == 0 { // a container that keeps no log
		return
	}
	what, proof := "succeeded, but the application was not running", []Line{verdict.Line}
	for _, i := range instances {
		if i.start.Time.After(verdict.Done.Add(noticed)) || i.end(c.End).Before(verdict.Received.Add(-believed)) {
			continue
		}
		proof = []Line{i.start.Line, verdict.Line}
		if stop := c.firstStop(state.ContainerID); stop != nil && i.start.Time.Before(stop.Begin.Add(-noticed)) {
			what, proof = "succeeded, but the application that ran was the one to be replaced", append(proof, stop.Line)
			continue
		}
		ran := verdict.Done.Sub(i.start.Time)
		if ran >= up-noticed {
			return
		}
		what = fmt.Sprintf("succeeded after %s, want minStartedSeconds %s", ran.Round(time.Millisecond), up)
	}
	c.violate("I4", subject, what, proof...)
}

// firstStop is the first call to stop a container.
func (c *checker) firstStop(id string) *Call {
	var first *Call
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.Method == "StopContainer" && call.ContainerID == bareID(id) && (first == nil || call.Begin.Before(first.Begin)) {
			first = call
		}
	}
	return first
}

// endsLate is how long after its deadline a request may end.
const endsLate = 5 * time.Second

// ends checks I5.
func (c *checker) ends() {
	turn := map[string]time.Time{} // by pod UID: when the next request's turn came
	for _, r := range c.requests {
		end, ended := r.endedAt()
		if !ended {
			end = c.End
		}
		begin := r.created.Received
		if turn[r.podUID].After(begin) {
			begin = turn[r.podUID]
		}
		if end.After(turn[r.podUID]) {
			turn[r.podUID] = end
		}
		last := r.versions[len(r.versions)-1].Line
		if terminal := r.terminal(); terminal != nil {
			last = terminal.Line
		}
		if seconds := r.spec().ActiveDeadlineSeconds; seconds != nil {
			deadline := r.created.Request.CreationTimestamp.Add(time.Duration(*seconds) * time.Second)
			if over := unimpeded(c.Faults, r.node(), deadline, end); over > endsLate {
				c.violate("I5", "request "+r.String(), fmt.Sprintf("not ended %s after its deadline, not counting faults",
					over.Round(time.Millisecond)), r.created.Line, last)
				continue
			}
		}
		if took := unimpeded(c.Faults, r.node(), begin, end); took > c.patience(r) {
			c.violate("I5", "request "+r.String(), fmt.Sprintf("not ended %s after its turn had come, not counting faults; it asks for %s at most",
				took.Round(time.Millisecond), c.patience(r)), r.created.Line, last)
		} else if !ended {
			c.violate("I5", "request "+r.String(), "not ended at the end of the run", r.created.Line, last)
		}
	}
}

// patience is the time the request asks for itself and what is added for the machine.
func (c *checker) patience(r *request) time.Duration {
	each := c.grace(r)
	patience := c.options.Patience
	if strategy := r.spec().Strategy; strategy != nil {
		each += time.Duration(strategy.MinStartedSeconds) * time.Second
		if strategy.UnreadyGracePeriodSeconds != nil {
			patience += time.Duration(*strategy.UnreadyGracePeriodSeconds) * time.Second
		}
	}
	return patience + time.Duration(len(r.spec().Containers))*each
}

// order checks I6. Which of two requests is older is certain only when one was created before the other was sent.
func (c *checker) order() {
	for n, later := range c.requests {
		begun := later.begun()
		if begun == nil || later.created.Verb != "create" {
			continue
		}
		for _, earlier := range c.requests[:n] {
			if earlier.podUID != later.podUID || earlier.created.Verb != "create" || !earlier.created.Done.Before(later.created.Received) {
				continue
			}
			if earlier.deleted != nil && earlier.deleted.Received.Before(begun.Done) {
				continue
			}
			end := earlier.terminal()
			if end != nil && revision(end.Request.ResourceVersion) < revision(begun.Request.ResourceVersion) {
				continue
			}
			if earlier.unsureSince(begun.Received) {
				continue
			}
			proof := []Line{earlier.created.Line, later.created.Line, begun.Line}
			if end != nil {
				proof = append(proof, end.Line)
			}
			c.violate("I6", "request "+later.String(), "begun before the older request "+earlier.String()+" of the same pod had ended", proof...)
		}
	}
}

// begun is the first version in which the request is being carried out.
func (r *request) begun() *Write {
	for i := range r.versions {
		if r.versions[i].Request.Status.Phase == v1beta1.ContainerRecreateRequestRecreating {
			return &r.versions[i]
		}
	}
	return nil
}
