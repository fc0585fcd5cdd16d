package jobplan

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/internal/recheck"
)

// List decides about an ImageListPullJob from the ImagePullJobs that it has created, by image.
func List(list *v1beta1.ImageListPullJob, jobs map[string]*v1beta1.ImagePullJob, now time.Time) (status v1beta1.ImageListPullJobStatus, remove bool, again recheck.At) {
	status = *list.Status.DeepCopy()
	if done := status.CompletionTime; done != nil {
		if ttl := list.Spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil {
			again = recheck.On(done.Add(time.Duration(*ttl) * time.Second))
			return status, again.Passed(now), again
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
		case job == nil || !over(job):
			if job != nil {
				status.Active++
			}
		default:
			status.Completed++
			// For a malformed reference no node fails, and OpenKruise's CRD drops the condition that reports it.
			_, malformed := image.Parse(name)
			if malformed == nil && job.Status.Failed == 0 && job.Status.Succeeded == job.Status.Desired &&
				!meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionPullFailed) {
				status.Succeeded++
				continue
			}
			status.FailedImageStatuses = append(status.FailedImageStatuses, &v1beta1.FailedImageStatus{ImagePullJob: job.Name, Name: name, Message: job.Status.Message})
		}
	}
	if status.Completed == status.Desired && list.Spec.CompletionPolicy.Type != v1beta1.CompletionNever {
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

// over reports whether a job has nothing more to do. A job that never completes continues with new nodes.
func over(job *v1beta1.ImagePullJob) bool {
	s := &job.Status
	if job.Spec.CompletionPolicy.Type == v1beta1.CompletionNever {
		return s.StartTime != nil && s.Desired == s.Succeeded+s.Failed
	}
	return s.CompletionTime != nil
}
