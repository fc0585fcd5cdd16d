package jobplan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// report is what a node reports about the pull that a job has requested.
type report struct {
	created *metav1.Time
	// said is nil if the node has reported nothing about it.
	said *v1beta1.ImageNamespaceStatus
}

func reportOf(job *v1beta1.ImagePullJob, tag *v1beta1.ImageTagSpec, tagSaid *v1beta1.ImageTagStatus) report {
	said := image.NamespaceStatus(tagSaid, job.Namespace)
	version, created := tag.Version, tag.CreatedAt
	if is := image.NamespaceSpec(tag, job.Namespace); is != nil {
		created = is.CreatedAt
		if tagSaid != nil && len(tagSaid.Namespaces) > 0 {
			version = is.Version
		}
	}
	if said != nil && said.Version != version {
		said = nil
	}
	return report{created: created, said: said}
}

// tried reports whether the node has begun the pull.
func (r report) tried() bool {
	return r.said != nil && (r.said.Phase == v1beta1.ImagePhasePulling || r.said.Message != "")
}

// idle returns why a node has not begun a pull, or "" if it has, or if the pull was requested a short time ago.
func (d *Decision) idle(r report, now time.Time) string {
	if r.created == nil || r.tried() {
		return ""
	}
	if at := r.created.Add(noticed); now.Before(at) {
		d.LookAt(at)
		return ""
	}
	if r.said == nil {
		return "the daemon of the node has not reported the pull"
	}
	return "other pulls come first"
}
