package jobplan

import (
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

const (
	// noticed is how long a pull may wait on a node until the message of the job says so. Most pulls begin earlier, and
	// would cause one more write of the status.
	noticed = 10 * time.Second
	// queuedDelay is the delay before a job that waits for other pulls of its namespace checks again without a change.
	queuedDelay = time.Minute
)

// idle returns why a node has not begun a pull, or "" if it has, or if the pull was requested a short time ago.
func (d *Decision) idle(job *v1beta1.ImagePullJob, tag *v1beta1.ImageTagSpec, tagSaid *v1beta1.ImageTagStatus, now time.Time) string {
	said := image.NamespaceStatus(tagSaid, job.Namespace)
	version, created := tag.Version, tag.CreatedAt
	if is := image.NamespaceSpec(tag, job.Namespace); is != nil {
		created = is.CreatedAt
		if tagSaid != nil && len(tagSaid.Namespaces) > 0 {
			version = is.Version
		}
	}
	reported := said != nil && said.Version == version
	if created == nil || reported && (said.Phase == v1beta1.ImagePhasePulling || said.Message != "") { // it has been tried
		return ""
	}
	if at := created.Add(noticed); now.Before(at) {
		d.LookAt(at)
		return ""
	}
	if !reported {
		return "the daemon of the node has not reported the pull"
	}
	return "other pulls come first"
}
