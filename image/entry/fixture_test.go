package entry_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
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
