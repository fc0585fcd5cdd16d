package history_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// pullJob creates an ImagePullJob named as its image.
func (s *fixture) pullJob(seconds float64, image string) {
	s.t.Helper()
	job := &v1beta1.ImagePullJob{TypeMeta: metav1.TypeMeta{Kind: "ImagePullJob", APIVersion: v1beta1.GroupVersion().String()}}
	job.Spec.Image = image
	s.write(seconds, ref{"create", user, "imagepulljobs", "", "chaos", image}, 201, job)
}

// unansweredPullJob is a job of which the API server has not said whether it was created.
func (s *fixture) unansweredPullJob(seconds float64, image string) {
	s.write(seconds, ref{"create", user, "imagepulljobs", "", "chaos", image}, 504, nil)
}

// shownPullJob is a write of the status of a job.
func (s *fixture) shownPullJob(seconds float64, image string) {
	s.t.Helper()
	job := &v1beta1.ImagePullJob{TypeMeta: metav1.TypeMeta{Kind: "ImagePullJob", APIVersion: v1beta1.GroupVersion().String()}}
	job.Spec.Image = image
	s.write(seconds, ref{"patch", managerUser, "imagepulljobs", "status", "chaos", image}, 200, job)
}

// countedPullJob is a job that pulls whatever is there, with its status: so many of two nodes are done.
func (s *fixture) countedPullJob(seconds float64, image string, done int32) {
	s.t.Helper()
	job := &v1beta1.ImagePullJob{TypeMeta: metav1.TypeMeta{Kind: "ImagePullJob", APIVersion: v1beta1.GroupVersion().String()}}
	job.Spec.Image, job.Spec.ImagePullPolicy = image, v1beta1.PullAlways
	s.write(seconds, ref{"create", user, "imagepulljobs", "", "chaos", image}, 201, job)
	job.Status.Desired, job.Status.Succeeded = 2, done
	s.write(seconds+5, ref{"patch", managerUser, "imagepulljobs", "status", "chaos", image}, 200, job)
}

func (s *fixture) deletePullJob(seconds float64, image string) {
	s.write(seconds, ref{"delete", user, "imagepulljobs", "", "chaos", image}, 200, nil)
}

func (s *fixture) pull(seconds float64, image, code string) {
	s.t.Helper()
	s.line(&s.calls, map[string]any{"time": at(seconds), "method": "PullImage", "image": image, "duration_ms": 100, "code": code, "caller": "pid=0"})
}
