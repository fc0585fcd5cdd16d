package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// How long a node may say nothing of a pull before the job counts it as failed.
const unresponsive = 10 * time.Minute

// Reasons of the conditions Complete and Failed.
const (
	ReasonPulled           = "Pulled"
	ReasonPullFailed       = "PullFailed"
	ReasonDeadlineExceeded = "DeadlineExceeded"
	ReasonInvalidImage     = "InvalidImage"
)

// JobDecision is what is to be done for an ImagePullJob.
type JobDecision struct {
	Status v1beta1.ImagePullJobStatus
	// Start names the nodes whose NodeImage is to get the image.
	Start []string
	// Full says which NodeImages have no room for the image. They get it when they have. Empty: all have.
	Full string
	// Delete the job: its time to live is over. Nothing else is to be done then.
	Delete bool
	// Again is when to look without another reason; zero: never.
	Again time.Time
}

// PlanJob decides about a job. Nodes are the NodeImages of the nodes that it selects.
func PlanJob(job *v1beta1.ImagePullJob, nodes []*v1beta1.NodeImage, now time.Time) JobDecision {
	d := JobDecision{Status: *job.Status.DeepCopy()}
	policy := job.Spec.CompletionPolicy
	if done := job.Status.CompletionTime; done != nil {
		if ttl := policy.TTLSecondsAfterFinished; ttl != nil {
			d.Again = done.Add(time.Duration(*ttl) * time.Second)
			d.Delete = !now.Before(d.Again)
		}
		return d
	}
	if d.Status.StartTime == nil {
		d.Status.StartTime = seconds(now)
	}
	reference, err := Parse(job.Spec.Image)
	if err != nil {
		d.end(ReasonInvalidImage, err.Error(), false, now)
		return d
	}
	count := d.count(job, reference, nodes, now)
	if s := policy.ActiveDeadlineSeconds; s != nil && policy.Type != v1beta1.CompletionNever {
		deadline := d.Status.StartTime.Add(time.Duration(*s) * time.Second)
		if !now.Before(deadline) && !count.all() {
			d.end(ReasonDeadlineExceeded, fmt.Sprintf("%d of %d nodes have the image after activeDeadlineSeconds %d", d.Status.Succeeded, d.Status.Desired, *s), false, now)
			return d
		}
		d.lookAt(deadline)
	}
	d.Status.Message, d.Full = count.message(), count.noRoom()
	switch {
	case policy.Type == v1beta1.CompletionNever || !count.all():
		d.Start = count.start(job)
	case d.Status.Failed > 0:
		d.end(ReasonPullFailed, count.message(), false, now)
	default:
		d.end(ReasonPulled, count.message(), true, now)
	}
	return d
}

func (d *JobDecision) lookAt(t time.Time) {
	if d.Again.IsZero() || t.Before(d.Again) {
		d.Again = t
	}
}

// end completes the status.
func (d *JobDecision) end(reason, message string, success bool, now time.Time) {
	d.Status.CompletionTime, d.Status.Message, d.Status.Active = seconds(now), clip(message), 0
	conditions(&d.Status.Conditions, reason, clip(message), success, now)
}

// conditions sets Complete and Failed as a batch/v1 Job has them, so that kubectl wait can be told to wait for either.
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

// tally is what the nodes say of a job.
type tally struct {
	status    *v1beta1.ImagePullJobStatus
	unstarted []string
	full      []string // NodeImages without room, and how much they have
	why       string   // of one failure
}

func (t tally) all() bool { return t.status.Succeeded+t.status.Failed == t.status.Desired }

func (t tally) message() string {
	switch {
	case t.status.Desired == 0:
		return "no node is selected"
	case t.why != "" && len(t.full) > 0:
		return clip(t.noRoom() + "; " + t.failures())
	case t.why != "":
		return clip(t.failures())
	case t.all():
		return "all nodes have the image"
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

// start chooses the nodes that begin now.
func (t tally) start(job *v1beta1.ImagePullJob) []string {
	parallel := 1
	if p := job.Spec.Parallelism; p != nil {
		parallel = p.IntValue()
	}
	slices.Sort(t.unstarted)
	return t.unstarted[:min(max(parallel-int(t.status.Active), 0), len(t.unstarted))]
}

func (d *JobDecision) count(job *v1beta1.ImagePullJob, reference Reference, nodes []*v1beta1.NodeImage, now time.Time) tally {
	s := &d.Status
	s.Desired, s.Active, s.Succeeded, s.Failed, s.FailedNodes = int32(len(nodes)), 0, 0, 0, nil //nolint:gosec // nodes of a cluster
	t := tally{status: s}
	for _, node := range nodes {
		tag := TagSpec(&node.Spec, reference)
		if tag == nil || !owns(tag, job) {
			if has := full(&node.Spec, reference); has != "" {
				t.full = append(t.full, "NodeImage "+node.Name+" has "+has)
			} else {
				t.unstarted = append(t.unstarted, node.Name)
			}
			continue
		}
		phase, why := d.phase(tag, TagStatus(&node.Status, reference), now)
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
		}
	}
	slices.Sort(s.FailedNodes)
	return t
}

// phase of a pull, which counts as failed when the node does not say anything of it.
func (d *JobDecision) phase(tag *v1beta1.ImageTagSpec, said *v1beta1.ImageTagStatus, now time.Time) (v1beta1.ImagePullPhase, string) {
	if said != nil && said.Version == tag.Version && (said.Phase == v1beta1.ImagePhaseSucceeded || said.Phase == v1beta1.ImagePhaseFailed) {
		return said.Phase, said.Message
	}
	if tag.CreatedAt == nil {
		return v1beta1.ImagePhaseWaiting, ""
	}
	late, why := tag.CreatedAt.Add(unresponsive), "node has not responded for a long time"
	if said != nil && said.Version == tag.Version {
		if tag.PullPolicy == nil || tag.PullPolicy.ActiveDeadlineSeconds == nil {
			return said.Phase, ""
		}
		late, why = late.Add(time.Duration(*tag.PullPolicy.ActiveDeadlineSeconds)*time.Second), "pulling exceeds the activeDeadlineSeconds"
	}
	if !now.Before(late) {
		return v1beta1.ImagePhaseFailed, why
	}
	d.lookAt(late)
	return v1beta1.ImagePhaseWaiting, ""
}

// TagSpec finds a pull in a spec; nil if it is not in it.
func TagSpec(spec *v1beta1.NodeImageSpec, reference Reference) *v1beta1.ImageTagSpec {
	image, ok := spec.Images[reference.Repository]
	if !ok {
		return nil
	}
	for i := range image.Tags {
		if image.Tags[i].Tag == reference.Tag {
			return &image.Tags[i]
		}
	}
	return nil
}

func owns(tag *v1beta1.ImageTagSpec, job *v1beta1.ImagePullJob) bool {
	for _, o := range tag.OwnerReferences {
		if o.UID == job.UID {
			return true
		}
	}
	return false
}

// PlanList decides about an ImageListPullJob from the ImagePullJobs that it has made, by image.
func PlanList(list *v1beta1.ImageListPullJob, jobs map[string]*v1beta1.ImagePullJob, now time.Time) (status v1beta1.ImageListPullJobStatus, remove bool, again time.Time) {
	status = *list.Status.DeepCopy()
	if done := status.CompletionTime; done != nil {
		if ttl := list.Spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil {
			again = done.Add(time.Duration(*ttl) * time.Second)
			return status, !now.Before(again), again
		}
		return status, false, again
	}
	if status.StartTime == nil {
		status.StartTime = seconds(now)
	}
	status.Desired, status.Active, status.Completed, status.Succeeded, status.FailedImageStatuses = int32(len(list.Spec.Images)), 0, 0, 0, nil //nolint:gosec // at most 255
	for _, name := range list.Spec.Images {
		job := jobs[name]
		switch {
		case job == nil || job.Status.CompletionTime == nil:
			if job != nil {
				status.Active++
			}
		default:
			status.Completed++
			// Of a malformed reference no node fails, and OpenKruise's CRD drops the condition that says it.
			_, malformed := Parse(name)
			if malformed == nil && job.Status.Failed == 0 && job.Status.Succeeded == job.Status.Desired &&
				!meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionPullFailed) {
				status.Succeeded++
				continue
			}
			status.FailedImageStatuses = append(status.FailedImageStatuses, &v1beta1.FailedImageStatus{ImagePullJob: job.Name, Name: name, Message: job.Status.Message})
		}
	}
	if status.Completed == status.Desired {
		status.CompletionTime = seconds(now)
		reason, message := ReasonPulled, "all images are pulled"
		if n := len(status.FailedImageStatuses); n > 0 {
			var names []string
			for _, f := range status.FailedImageStatuses {
				names = append(names, f.Name)
			}
			reason, message = ReasonPullFailed, fmt.Sprintf("%d of %d images failed: %s", n, status.Desired, strings.Join(names, ", "))
		}
		conditions(&status.Conditions, reason, clip(message), reason == ReasonPulled, now)
	}
	return status, false, again
}
