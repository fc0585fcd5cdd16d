package control

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/jobplan"
)

// The intervals at which a running job's pull secrets are compared with their copies. The manager may read Secrets, but
// not watch them.
const (
	followPulling = 5 * time.Second // also in the first minutes of a job, when users correct mistakes
	followLater   = time.Minute
	firstMinutes  = 10 * time.Minute
)

// follow updates the copies of the pull secrets of a running job when it is time, and sets when it must be called again.
func (j *jobs) follow(ctx context.Context, job *v1beta1.ImagePullJob, decision *jobplan.Decision) error {
	if len(job.Spec.PullSecrets) == 0 || decision.Status.CompletionTime != nil {
		return nil
	}
	every, now := followLater, j.Clock()
	if decision.Status.Active > 0 || now.Sub(decision.Status.StartTime.Time) < firstMinutes {
		every = followPulling
	}
	if next := j.copied.get(client.ObjectKeyFromObject(job)).Add(every); now.Before(next) {
		decision.LookAt(next)
		return nil
	}
	_, err := j.copySecrets(ctx, job)
	decision.LookAt(now.Add(every))
	return err
}

// copySecrets updates the copies of a job's pull secrets and returns references to them.
func (j *jobs) copySecrets(ctx context.Context, job *v1beta1.ImagePullJob) ([]v1beta1.ReferenceObject, error) {
	copies, err := j.copies.Make(ctx, job)
	if err == nil && len(copies) > 0 {
		j.copied.set(client.ObjectKeyFromObject(job), j.Clock())
	}
	return copies, err
}

// times maps jobs to times. The zero value is ready for use.
type times struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]time.Time
}

func (t *times) get(job types.NamespacedName) time.Time {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.of[job]
}

func (t *times) set(job types.NamespacedName, at time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.of == nil {
		t.of = map[types.NamespacedName]time.Time{}
	}
	t.of[job] = at
}

func (t *times) forget(job types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.of, job)
}
