// Package cli pulls images to the node of a pod before they are needed, by ImagePullJobs, and reports the progress.
package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kube"
)

// API accesses the ImagePullJobs of a cluster; *kube.ImagePullJobs implements it.
type API interface {
	Create(ctx context.Context, job *v1beta1.ImagePullJob) (*v1beta1.ImagePullJob, error)
	Get(ctx context.Context, namespace, name string) (*v1beta1.ImagePullJob, error)
	Delete(ctx context.Context, job *v1beta1.ImagePullJob) error
	Node(ctx context.Context, name string) (*v1beta1.NodeImage, error)
}

const (
	// poll is the interval between checks of a pull.
	poll = 500 * time.Millisecond
	// begunWithin is how long manager and daemon may take until the pull begins.
	begunWithin = 20 * time.Second
	// kept is how long a job is kept after its end, in seconds, so that users can see why it failed.
	kept = 300
	// longest limits an attempt, in seconds, if the command has no timeout.
	longest = 3600
	retries = 1
	// cancelTimeout limits the deletion of an abandoned job.
	cancelTimeout = 5 * time.Second
)

// Jobs pulls images by ImagePullJobs.
type Jobs struct {
	// Open returns the API of the jobs, or [kube.ErrImagePullJobsNotServed] if the cluster does not serve them.
	Open func(ctx context.Context) (API, error)
}

// Pull returns when the node of the pod has the images. images is keyed by the name of the container. It reports its
// progress. The error wraps image.ErrNotBegun or image.ErrFailed if one of these is the cause. It creates a job for
// each image. Before it returns it deletes the jobs that have not ended, which cancels them.
func (p Jobs) Pull(ctx context.Context, pod *corev1.Pod, images map[string]string, progress func(string)) (err error) {
	jobs, err := p.Open(ctx)
	if errors.Is(err, kube.ErrImagePullJobsNotServed) {
		return fmt.Errorf("%w: %w", image.ErrNotBegun, err)
	}
	if err != nil {
		return err
	}
	var pulls []*pull
	defer func() {
		for _, pull := range pulls {
			err = errors.Join(err, pull.cancel(ctx))
		}
	}()
	for _, name := range slices.Compact(slices.Sorted(maps.Values(images))) {
		reference, err := image.Parse(name)
		if err != nil {
			return err
		}
		job, err := jobs.Create(ctx, newJob(ctx, pod, name, images))
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %w", image.ErrNotBegun, err)
		}
		if err != nil {
			return err
		}
		pulls = append(pulls, &pull{jobs: jobs, job: job, reference: reference, node: pod.Spec.NodeName, since: time.Now()})
	}
	for _, pull := range pulls {
		if err := pull.follow(ctx, progress); err != nil {
			return fmt.Errorf("image %s: %w", pull.job.Spec.Image, err)
		}
	}
	return nil
}

func newJob(ctx context.Context, pod *corev1.Pod, name string, images map[string]string) *v1beta1.ImagePullJob {
	seconds := int64(longest)
	if deadline, ok := ctx.Deadline(); ok {
		seconds = max(1, int64(time.Until(deadline).Seconds()))
	}
	job := &v1beta1.ImagePullJob{}
	job.Namespace, job.GenerateName = pod.Namespace, "refit-"+pod.Name[:min(len(pod.Name), longestPrefix)]+"-"
	job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	job.Spec.Image = name
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{pod.Spec.NodeName}}
	job.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(seconds)), BackoffLimit: new(int32(retries))} //nolint:gosec // bounded by --timeout
	job.Spec.CompletionPolicy = v1beta1.CompletionPolicy{
		Type: v1beta1.CompletionAlways, ActiveDeadlineSeconds: &seconds, TTLSecondsAfterFinished: new(int32(kept)),
	}
	for _, secret := range pod.Spec.ImagePullSecrets {
		job.Spec.PullSecrets = append(job.Spec.PullSecrets, secret.Name)
	}
	job.Spec.ImagePullPolicy = v1beta1.PullIfNotPresent
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			// With this policy kubelet asks the registry, so having another image with this tag would not help.
			if images[containers[i].Name] == name && containers[i].ImagePullPolicy == corev1.PullAlways {
				job.Spec.ImagePullPolicy = v1beta1.PullAlways
			}
		}
	}
	return job
}

// longestPrefix leaves space for the suffix that the API server adds to a name.
const longestPrefix = 200

// pull is the pull of one image.
type pull struct {
	jobs      API
	job       *v1beta1.ImagePullJob
	reference image.Reference
	node      string
	since     time.Time
}

func (p *pull) cancel(ctx context.Context) error {
	if p.job.Status.CompletionTime != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	err := p.jobs.Delete(ctx, p.job)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// follow returns when the node has the image, or with an error when the pull has failed.
func (p *pull) follow(ctx context.Context, progress func(string)) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		job, err := p.jobs.Get(ctx, p.job.Namespace, p.job.Name)
		text, begun := "", true
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case console.Unreachable(err): // the pull continues
			text, p.since = "the API server cannot be reached, trying again: "+err.Error(), time.Now()
		case err != nil:
			return err
		default:
			p.job = job
			if job.Status.CompletionTime != nil {
				return p.ended()
			}
			text, begun = p.progress(ctx)
		}
		if !begun && time.Since(p.since) > begunWithin {
			return fmt.Errorf("%w: the pull has not begun within %s, %s", image.ErrNotBegun, begunWithin, p.why())
		}
		progress(text)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// ended returns nil if the node has the image, and an error if the pull has failed.
func (p *pull) ended() error {
	status := p.job.Status
	switch {
	case status.Desired == 0:
		return fmt.Errorf("%w: node %s has no NodeImage, which refit-manager makes", image.ErrNotBegun, p.node)
	case status.Succeeded == status.Desired:
		return nil
	default:
		return fmt.Errorf("%w: ImagePullJob %s: %s", image.ErrFailed, p.job.Name, status.Message)
	}
}

// why returns what prevents the pull from beginning.
func (p *pull) why() string {
	details := image.Details(p.job.Status.Message)
	switch {
	case details != "":
		return details
	case p.job.Status.StartTime == nil:
		return "refit-manager has not taken it up"
	default:
		return "refit-daemon on node " + p.node + " has not taken it up"
	}
}

// progress returns the progress of the pull, and whether the node has begun it. Without permission to read the
// NodeImage it contains no bytes.
func (p *pull) progress(ctx context.Context) (text string, begun bool) {
	text = "pulling " + p.job.Spec.Image
	node, err := p.jobs.Node(ctx, p.node)
	if err != nil {
		return text, p.job.Status.Active > 0
	}
	want, said := image.TagSpec(&node.Spec, p.reference), image.TagStatus(&node.Status, p.reference)
	if want == nil || said == nil || said.Version != want.Version {
		return "waiting for node " + p.node + " to pull " + p.job.Spec.Image, false
	}
	if said.TotalBytes > 0 {
		text += fmt.Sprintf(", %s of %s", Bytes(said.PulledBytes), Bytes(said.TotalBytes))
	}
	ours := image.NamespaceStatus(said, p.job.Namespace) // the status of the tag summarizes all namespaces
	if ours == nil {
		return "waiting for node " + p.node + " to pull " + p.job.Spec.Image, false
	}
	if ours.Phase == v1beta1.ImagePhaseWaiting {
		text = p.job.Spec.Image + " is to be pulled when others have been"
	}
	if message := strings.TrimSpace(ours.Message); message != "" {
		text += ": " + message
	}
	return text, true
}

// Bytes formats a number of bytes in a suitable unit.
func Bytes(n int64) string {
	const unit = 1000
	switch {
	case n < unit*unit:
		return fmt.Sprintf("%.0f kB", float64(n)/unit)
	case n < unit*unit*unit:
		return fmt.Sprintf("%.1f MB", float64(n)/unit/unit)
	default:
		return fmt.Sprintf("%.2f GB", float64(n)/unit/unit/unit)
	}
}
