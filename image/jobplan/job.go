// Package jobplan decides about ImagePullJobs and ImageListPullJobs from the status of NodeImages: on which nodes pulls
// begin next, and how a job has ended.
package jobplan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/recheck"
)

// maxMessage limits a message of a job, in bytes.
const maxMessage = 512

func clip(text string) string { return foreign.Shorten(text, maxMessage) }

func seconds(t time.Time) *metav1.Time { return &metav1.Time{Time: time.Unix(t.Unix(), 0).UTC()} }

// unresponsive is how long a node may report nothing about a pull before the job counts it as failed.
const unresponsive = 10 * time.Minute

// Reasons of the conditions Complete and Failed.
const (
	ReasonPulled           = "Pulled"
	ReasonPullFailed       = "PullFailed"
	ReasonDeadlineExceeded = v1beta1.ReasonPullDeadlineExceeded
	ReasonInvalidImage     = "InvalidImage"
	ReasonInvalidSelector  = "InvalidSelector"
)

// Decision is what to do for an ImagePullJob.
type Decision struct {
	Status v1beta1.ImagePullJobStatus
	// Start names the nodes to whose NodeImages the image is added. Spare names nodes that replace those whose
	// NodeImage cannot be written.
	Start, Spare []string
	// Full says which NodeImages have no space for the image, or is empty. They get the image when they have space.
	Full string
	// Delete says to delete the job, because its TTL has expired. Nothing else is to be done then.
	Delete bool
	// Again is when to decide again.
	Again recheck.At
}

// Unreadable decides about a job whose selector cannot be read, because of cause: it has failed.
func Unreadable(job *v1beta1.ImagePullJob, cause error, now time.Time) Decision {
	if job.Status.CompletionTime != nil {
		return Job(job, nil, now)
	}
	d := Decision{Status: *job.Status.DeepCopy()}
	if d.Status.StartTime == nil {
		d.Status.StartTime = seconds(now)
	}
	d.end(ReasonInvalidSelector, clip(cause.Error()), clip(cause.Error()), now)
	return d
}

// Job decides about a job. nodes are the NodeImages of the nodes that it selects.
func Job(job *v1beta1.ImagePullJob, nodes []*v1beta1.NodeImage, now time.Time) Decision {
	d := Decision{Status: *job.Status.DeepCopy()}
	policy := job.Spec.CompletionPolicy
	if done := job.Status.CompletionTime; done != nil {
		if ttl := policy.TTLSecondsAfterFinished; ttl != nil {
			d.Again = recheck.On(done.Add(time.Duration(*ttl) * time.Second))
			d.Delete = d.Again.Passed(now)
		}
		return d
	}
	if d.Status.StartTime == nil {
		d.Status.StartTime = seconds(now)
	}
	reference, err := image.Parse(job.Spec.Image)
	if err != nil {
		why := clip("spec.image: " + err.Error())
		d.end(ReasonInvalidImage, why, why, now)
		return d
	}
	count := d.count(job, reference, nodes, now)
	if s := policy.ActiveDeadlineSeconds; s != nil && policy.Type != v1beta1.CompletionNever {
		deadline := d.Status.StartTime.Add(time.Duration(*s) * time.Second)
		if !now.Before(deadline) && !count.all() {
			why := fmt.Sprintf("%d of %d nodes have the image after activeDeadlineSeconds %d", d.Status.Succeeded, d.Status.Desired, *s)
			details := count.atDeadline()
			count.giveUp()
			d.end(ReasonDeadlineExceeded, join(why, details), join(image.MessageDeadline, details), now)
			return d
		}
		d.LookAt(deadline)
	}
	d.Status.Message, d.Full = join(count.progress(), count.details()), count.noRoom()
	switch {
	case policy.Type == v1beta1.CompletionNever || !count.all():
		d.Start, d.Spare = count.start(job)
	case d.Status.Failed > 0:
		d.end(ReasonPullFailed, count.details(), join(image.MessageCompleted, count.details()), now)
	default:
		d.end(ReasonPulled, cmp.Or(count.details(), "all nodes have the image"), join(image.MessageCompleted, count.details()), now)
	}
	return d
}

// LookAt requests another decision at t, unless an earlier one is already requested.
func (d *Decision) LookAt(t time.Time) { d.Again = d.Again.Or(t) }

// end completes the status. why is the message of the conditions.
func (d *Decision) end(reason, why, message string, now time.Time) {
	d.Status.CompletionTime, d.Status.Message, d.Status.Active = seconds(now), message, 0
	conditions(&d.Status.Conditions, reason, why, reason == ReasonPulled, now)
}

// conditions sets Complete and Failed like batch/v1 Jobs do, so that kubectl wait can wait for either.
func conditions(list *[]metav1.Condition, reason, message string, success bool, now time.Time) {
	for kind, is := range map[string]bool{v1beta1.ConditionPullComplete: success, v1beta1.ConditionPullFailed: !success} {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(list, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: *seconds(now)})
	}
	slices.SortFunc(*list, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
}

// tally is what the nodes report about a job.
type tally struct {
	status    *v1beta1.ImagePullJobStatus
	unstarted []string
	open      []string // nodes whose pull has neither succeeded nor failed, or has not begun
	full      []string // NodeImages without space, and how much they contain
	queued    []string // NodeImages on which the job waits for other pulls of its namespace, and how many they are
	idle      []string // nodes that have not begun the pull, with the reason
	tried     []string // nodes whose pull has begun and not ended
	messages  []string // what the nodes in tried report beside the phase
	why       string   // the message of one failure
}

func (t tally) all() bool { return t.status.Succeeded+t.status.Failed == t.status.Desired }

// giveUp counts unfinished nodes as failed, like OpenKruise, so that the numbers add up at the end.
func (t tally) giveUp() {
	t.status.Failed += int32(len(t.open)) //nolint:gosec // nodes of a cluster
	t.status.FailedNodes = append(t.status.FailedNodes, t.open...)
	slices.Sort(t.status.FailedNodes)
}

// start chooses the nodes that begin now, and the spare nodes.
func (t tally) start(job *v1beta1.ImagePullJob) (start, spare []string) {
	parallel := 1
	if p := job.Spec.Parallelism; p != nil {
		parallel = p.IntValue()
	}
	slices.Sort(t.unstarted)
	n := min(max(parallel-int(t.status.Active), 0), len(t.unstarted))
	return t.unstarted[:n:n], t.unstarted[n:]
}

func (d *Decision) count(job *v1beta1.ImagePullJob, reference image.Reference, nodes []*v1beta1.NodeImage, now time.Time) tally {
	s := &d.Status
	s.Desired, s.Active, s.Succeeded, s.Failed, s.FailedNodes = int32(len(nodes)), 0, 0, 0, nil //nolint:gosec // nodes of a cluster
	t := tally{status: s}
	for _, node := range nodes {
		tag := image.TagSpec(&node.Spec, reference)
		owned := tag != nil && owns(tag, job)
		ended := entry.EndedFor(node, job, now)
		if !owned && ended == nil {
			t.open = append(t.open, node.Name)
			if has := entry.Queued(node, job); has != "" {
				t.queued = append(t.queued, "NodeImage "+node.Name+" has "+has)
				d.LookAt(now.Add(queuedDelay))
			} else if has := entry.Full(node, job); has != "" {
				t.full = append(t.full, "NodeImage "+node.Name+" has "+has)
			} else {
				t.unstarted = append(t.unstarted, node.Name)
			}
			continue
		}
		phase, why := d.ended(ended)
		if owned {
			phase, why = d.phase(job, tag, image.TagStatus(&node.Status, reference), now)
		}
		switch phase {
		case v1beta1.ImagePhaseSucceeded:
			s.Succeeded++
		case v1beta1.ImagePhaseFailed:
			s.Failed++
			s.FailedNodes = append(s.FailedNodes, node.Name)
			if name := node.Name + ": " + why; t.why == "" || name < t.why {
				t.why = name
			}
		default:
			s.Active++
			t.open = append(t.open, node.Name)
			said := reportOf(job, tag, image.TagStatus(&node.Status, reference))
			if why := d.idle(said, now); why != "" {
				t.idle = append(t.idle, node.Name+": "+why)
			} else if said.tried() {
				t.tried = append(t.tried, node.Name+": "+string(said.said.Phase))
				if said.said.Message != "" {
					t.messages = append(t.messages, node.Name+": "+said.said.Message)
				}
			}
		}
	}
	slices.Sort(s.FailedNodes)
	return t
}

// ended returns a recorded outcome, and requests another decision for when the job pulls the image again.
func (d *Decision) ended(e *entry.Ended) (v1beta1.ImagePullPhase, string) {
	if e == nil {
		return "", ""
	}
	if !e.Until.IsZero() {
		d.LookAt(e.Until)
	}
	return e.Phase, e.Message
}

// phase returns the phase of the pull for a job. The pull counts as failed if the node reports nothing about it. Only
// the outcome of the version that the job requested counts: another job may have requested a newer pull of the image,
// and other namespaces have their own versions.
func (d *Decision) phase(job *v1beta1.ImagePullJob, tag *v1beta1.ImageTagSpec, tagSaid *v1beta1.ImageTagStatus, now time.Time) (v1beta1.ImagePullPhase, string) {
	said := image.NamespaceStatus(tagSaid, job.Namespace)
	version, created, policy := tag.Version, tag.CreatedAt, tag.PullPolicy
	if is := image.NamespaceSpec(tag, job.Namespace); is != nil {
		version, created, policy = is.Version, is.CreatedAt, is.PullPolicy
		if tagSaid == nil || len(tagSaid.Namespaces) == 0 { // the daemon is not refit-daemon, and only knows the version of the tag
			version = tag.Version
		} else if outcome := entry.OutcomeFor(job.UID, is, said); outcome != nil {
			return outcome.Phase, outcome.Message
		}
	}
	if said != nil && said.Version == version && (said.Phase == v1beta1.ImagePhaseSucceeded || said.Phase == v1beta1.ImagePhaseFailed) {
		return said.Phase, said.Message
	}
	if created == nil {
		return v1beta1.ImagePhaseWaiting, ""
	}
	late, why := created.Add(unresponsive), "node has not responded for a long time"
	if said != nil && said.Version == version {
		if policy == nil || policy.ActiveDeadlineSeconds == nil {
			return said.Phase, ""
		}
		late, why = late.Add(time.Duration(*policy.ActiveDeadlineSeconds)*time.Second), "pulling exceeds the activeDeadlineSeconds"
	}
	if !now.Before(late) {
		return v1beta1.ImagePhaseFailed, why
	}
	d.LookAt(late)
	return v1beta1.ImagePhaseWaiting, ""
}

func owns(tag *v1beta1.ImageTagSpec, job *v1beta1.ImagePullJob) bool {
	for _, o := range tag.OwnerReferences {
		if o.UID == job.UID {
			return true
		}
	}
	return false
}
