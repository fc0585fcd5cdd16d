package control

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/image/jobplan"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/guard"
)

const (
	// maxErrors limits the failed writes of NodeImages per reconciliation.
	maxErrors = 16
	// parallelStarts is the number of NodeImages that a job is added to at the same time. One after another, a job that may use a
	// thousand nodes would wait a thousand times for the API server.
	parallelStarts = 8
)

// starting is the start of the pulls of a job on several nodes at the same time.
type starting struct {
	mu      sync.Mutex
	started int
	errs    []error
	again   bool // a node could not take the image yet
}

// start adds the image to the NodeImages of some nodes. If one of them cannot be written, it uses a spare node instead.
func (j *jobs) start(ctx context.Context, job *v1beta1.ImagePullJob, decision *jobplan.Decision) error {
	secrets, err := j.copySecrets(ctx, job)
	if err != nil {
		return err
	}
	var s starting
	left := slices.Concat(decision.Start, decision.Spare)
	for !s.over(ctx) && len(left) > 0 && s.started < len(decision.Start) {
		nodes := left[:min(len(decision.Start)-s.started, len(left))]
		left = left[len(nodes):]
		s.onEach(ctx, nodes, func(node string) error {
			return j.Guard.Do("write", guard.Of(job), func() error {
				return j.write(ctx, node, func(object *v1beta1.NodeImage) bool { return j.add(object, job, secrets, &s) })
			})
		})
	}
	if s.again {
		decision.LookAt(j.Clock().Add(conflict.First))
	}
	return errors.Join(s.errs...)
}

// add adds the image of a job to a NodeImage, and reports whether it has changed it. The cache may not have shown yet that the job is
// already there, or that there is no space. The next reconciliation will handle that.
func (j *jobs) add(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob, secrets []v1beta1.ReferenceObject, s *starting) bool {
	if names(node, job) || entry.EndedFor(node, job, j.Clock()) != nil {
		return false
	}
	added := entry.Queued(node, job) == "" && entry.Request(node, job, secrets, j.Clock())
	if !added {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.again = true
	}
	return added
}

// onEach calls write for each of the nodes, for several at a time.
func (s *starting) onEach(ctx context.Context, nodes []string, write func(node string) error) {
	var group errgroup.Group
	group.SetLimit(parallelStarts)
	for _, node := range nodes {
		group.Go(func() error {
			if s.over(ctx) {
				return nil
			}
			s.ended(write(node))
			return nil
		})
	}
	_ = group.Wait() // the goroutines return no errors
}

// over reports whether no further node is tried.
func (s *starting) over(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.errs) >= maxErrors || ctx.Err() != nil
}

func (s *starting) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.started++
	case client.IgnoreNotFound(err) != nil:
		s.errs = append(s.errs, err)
	}
}
