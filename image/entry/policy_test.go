package entry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
)

func patientJob(name string, policy v1beta1.ImagePullPolicy, timeout, backoff int32, deadline int64) *v1beta1.ImagePullJob {
	job := &v1beta1.ImagePullJob{}
	job.Namespace, job.Name, job.UID = "ns-"+name, name, types.UID(name)
	job.Spec.Image, job.Spec.ImagePullPolicy = "bn/mv:v1", policy
	job.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &backoff}
	if deadline > 0 {
		job.Spec.CompletionPolicy.ActiveDeadlineSeconds = &deadline
	}
	return job
}

// Whoever may create ImagePullJobs in some namespace ends nobody else's pull, and Always is not answered by what is on the node.
func TestPullHasTheMostPatientPolicyOfItsJobs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC)
	long := patientJob("long", v1beta1.PullIfNotPresent, 600, 5, 900)
	short := patientJob("short", v1beta1.PullIfNotPresent, 10, 0, 20)
	always := patientJob("always", v1beta1.PullAlways, 10, 0, 20)
	sudden := patientJob("sudden", v1beta1.PullIfNotPresent, 0, 1, 30)
	again := patientJob("again", v1beta1.PullAlways, 20, 1, 30)
	unbounded := patientJob("unbounded", v1beta1.PullIfNotPresent, 10, -1, 0)
	jobs := map[types.UID]*v1beta1.ImagePullJob{}
	for _, job := range []*v1beta1.ImagePullJob{long, short, always, unbounded, sudden, again} {
		jobs[job.UID] = job
	}
	type want struct {
		policy           v1beta1.ImagePullPolicy
		timeout, backoff int32
		deadline         int64 // 0: none
		version          int64
	}
	for name, tt := range map[string]struct {
		jobs []*v1beta1.ImagePullJob
		gone *v1beta1.ImagePullJob
		want want
	}{
		"one":                                 {[]*v1beta1.ImagePullJob{short}, nil, want{v1beta1.PullIfNotPresent, 10, 0, 20, 0}},
		"a hasty one later":                   {[]*v1beta1.ImagePullJob{long, short}, nil, want{v1beta1.PullIfNotPresent, 600, 5, 900, 0}},
		"a patient one later":                 {[]*v1beta1.ImagePullJob{short, long}, nil, want{v1beta1.PullIfNotPresent, 600, 5, 900, 0}},
		"the patient one is deleted":          {[]*v1beta1.ImagePullJob{short, long}, long, want{v1beta1.PullIfNotPresent, 10, 0, 20, 0}},
		"no limit, and the default retries":   {[]*v1beta1.ImagePullJob{short, unbounded}, nil, want{v1beta1.PullIfNotPresent, 10, 3, 0, 0}},
		"Always before":                       {[]*v1beta1.ImagePullJob{always, long}, nil, want{v1beta1.PullAlways, 600, 5, 900, 0}},
		"Always later is another version":     {[]*v1beta1.ImagePullJob{long, always}, nil, want{v1beta1.PullAlways, 600, 5, 900, 1}},
		"a timeout of nothing is the default": {[]*v1beta1.ImagePullJob{short, sudden}, nil, want{v1beta1.PullIfNotPresent, 600, 1, 30, 0}},
		"Always twice":                        {[]*v1beta1.ImagePullJob{always, again}, nil, want{v1beta1.PullAlways, 20, 1, 30, 0}},
		"one of two Always is deleted":        {[]*v1beta1.ImagePullJob{always, again}, always, want{v1beta1.PullAlways, 20, 1, 30, 0}},
		"Always is deleted":                   {[]*v1beta1.ImagePullJob{always, long}, always, want{v1beta1.PullIfNotPresent, 600, 5, 900, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spec v1beta1.NodeImageSpec
			for _, job := range tt.jobs {
				if !request(&spec, &v1beta1.NodeImageStatus{}, job, nil, now) {
					t.Fatalf("no room for %s", job.Name)
				}
			}
			find := func(o corev1.ObjectReference) *v1beta1.ImagePullJob {
				if tt.gone != nil && o.UID == tt.gone.UID {
					return nil
				}
				return jobs[o.UID]
			}
			if changed, _ := prune(&spec, &v1beta1.NodeImageStatus{}, find, now); changed != (tt.gone != nil) {
				t.Errorf("Prune has changed the spec: %v", changed)
			}
			tag := spec.Images["bn/mv"].Tags[0]
			got := want{tag.ImagePullPolicy, *tag.PullPolicy.TimeoutSeconds, *tag.PullPolicy.BackoffLimit, 0, tag.Version}
			if d := tag.PullPolicy.ActiveDeadlineSeconds; d != nil {
				got.deadline = *d
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		})
	}
}
