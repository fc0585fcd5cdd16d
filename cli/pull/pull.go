// Package pull has images on the node of a pod before they are needed, by ImagePullJobs, and reports the progress.
package pull

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
	"github.com/refit-project/refit/kube"
)

// Errors of a pull.
var (
	// ErrNotBegun: no daemon in the cluster has begun to pull the image.
	ErrNotBegun = errors.New("nothing pulls images before they are needed")
	// ErrFailed: the image could not be pulled.
	ErrFailed = errors.New("the pull failed")
)

// API are the ImagePullJobs of a cluster; *kube.ImagePullJobs has it.
type API interface {
	Create(ctx context.Context, job *v1beta1.ImagePullJob) (*v1beta1.ImagePullJob, error)
	Get(ctx context.Context, namespace, name string) (*v1beta1.ImagePullJob, error)
	Delete(ctx context.Context, job *v1beta1.ImagePullJob) error
	Node(ctx context.Context, name string) (*v1beta1.NodeImage, error)
}

const (
	// poll is between looks at a pull.
	poll = 500 * time.Millisecond
	// begunWithin is how long manager and daemon may take until the pull has begun.
	begunWithin = 20 * time.Second
	// kept is how long a job stays after its end, in seconds, so that users can see why it failed.
	kept = 300
	// longest bounds an attempt, in seconds, where the command is not bounded.
	longest = 3600
	retries = 1
	// cancelTimeout bounds the deletion of a job that is given up.
	cancelTimeout = 5 * time.Second
)

// Jobs pulls by ImagePullJobs.
type Jobs struct {
	// Open finds the jobs of the cluster; [kube.ErrImagePullJobsNotServed] if it has none.
	Open func(ctx context.Context) (API, error)
}

// Pull returns when the node of the pod has the images, which are named by the container they are for. It
// reports its progress. The error wraps ErrNotBegun or ErrFailed if that is why. It makes a job for each image. Those that have not
// ended when it returns are deleted, which cancels them.
func (p Jobs) Pull(ctx context.Context, pod *corev1.Pod, images map[string]string, progress func(string)) (err error) {
	jobs, err := p.Open(ctx)
	if errors.Is(err, kube.ErrImagePullJobsNotServed) {
		return fmt.Errorf("%w: %w", ErrNotBegun, err)
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
			return fmt.Errorf("%w: %w", ErrNotBegun, err)
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
			// kubelet asks the registry then, so that another image of this tag is of no use.
			if images[containers[i].Name] == name && containers[i].ImagePullPolicy == corev1.PullAlways {
				job.Spec.ImagePullPolicy = v1beta1.PullAlways
			}
		}
	}
	return job
}

// longestPrefix leaves room for what the API server adds to a name.
const longestPrefix = 200

// pull is one image's.
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

// follow returns when the node has the image or the pull has failed.
func (p *pull) follow(ctx context.Context, progress func(string)) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		job, err := p.jobs.Get(ctx, p.job.Namespace, p.job.Name)
		if err != nil {
			return err
		}
		p.job = job
		if job.Status.CompletionTime != nil {
			return p.ended()
		}
		text, begun := p.progress(ctx)
		if !begun && time.Since(p.since) > begunWithin {
			return fmt.Errorf("%w: the pull has not begun within %s, %s", ErrNotBegun, begunWithin, p.why())
		}
		progress(text)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// ended is nil if the node has the image.
func (p *pull) ended() error {
	status := p.job.Status
	switch {
	case status.Desired == 0:
		return fmt.Errorf("%w: node %s has no NodeImage, which refit-manager makes", ErrNotBegun, p.node)
	case status.Succeeded == status.Desired:
		return nil
	default:
		return fmt.Errorf("%w: ImagePullJob %s: %s", ErrFailed, p.job.Name, status.Message)
	}
}

// why says what is missing for the pull to begin.
func (p *pull) why() string {
	switch {
	case p.job.Status.Message != "":
		return p.job.Status.Message
	case p.job.Status.StartTime == nil:
		return "refit-manager has not taken it up"
	default:
		return "refit-daemon on node " + p.node + " has not taken it up"
	}
}

// progress says how far the pull is, and whether the node has begun it. Who may not read the NodeImage sees no bytes.
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
	if said.Phase == v1beta1.ImagePhaseWaiting {
		text = p.job.Spec.Image + " is to be pulled when others have been"
	}
	if message := strings.TrimSpace(said.Message); message != "" {
		text += ": " + message
	}
	return text, true
}

// Bytes writes a number of bytes in the unit that suits it.
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
