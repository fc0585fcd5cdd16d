package entry_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/internal/recheck"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func job(change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	j := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "j", UID: "job"}}
	j.Spec.Image = "game:v1"
	for _, c := range change {
		c(j)
	}
	return j
}

// among finds jobs by their UID.
func among(jobs ...*v1beta1.ImagePullJob) func(corev1.ObjectReference) *v1beta1.ImagePullJob {
	return func(o corev1.ObjectReference) *v1beta1.ImagePullJob {
		for _, j := range jobs {
			if j.UID == o.UID {
				return j
			}
		}
		return nil
	}
}

// request and prune are entry.Request and entry.Prune for a NodeImage with this spec and status.
func request(spec *v1beta1.NodeImageSpec, status *v1beta1.NodeImageStatus, job *v1beta1.ImagePullJob, secrets []v1beta1.ReferenceObject, at time.Time) bool {
	node := &v1beta1.NodeImage{Spec: *spec, Status: *status}
	added := entry.Request(node, job, secrets, at)
	*spec = node.Spec
	return added
}

func prune(
	spec *v1beta1.NodeImageSpec, status *v1beta1.NodeImageStatus, find func(corev1.ObjectReference) *v1beta1.ImagePullJob, at time.Time,
) (changed bool, again recheck.At) {
	node := &v1beta1.NodeImage{Spec: *spec, Status: *status}
	changed, again = entry.Prune(node, find, at)
	*spec = node.Spec
	return changed, again
}
