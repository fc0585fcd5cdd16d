// Package pullnodes pulls an image to nodes before it is needed, by an ImagePullJob for the nodes that match a
// selector, and prints the progress, in nodes and in bytes.
package pullnodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	imagecli "github.com/refit-project/refit/image/cli"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
)

// Config says what to pull, and to which nodes.
type Config struct {
	API       client.Client
	Output    *console.Output
	Made      table.Made // prints the created job
	Namespace string     // of the job, and of its pull secrets
	Image     string
	// Nodes selects nodes by their labels; nil means all nodes.
	Nodes       *metav1.LabelSelector
	Parallelism int32 // number of nodes that pull at the same time
	Secrets     []string
	Always      bool // ask the registry whether the tag has moved, even if a node has the image
	// Wait waits for the end of the job.
	Wait    bool
	Timeout time.Duration // zero means no limit
}

const (
	poll = 500 * time.Millisecond
	kept = 24 * 3600 // seconds that the job is kept after its end
	// shownNodes limits the printed failures.
	shownNodes = 5
)

// Errors of a pull.
var (
	// ErrFailed means that a node does not have the image.
	ErrFailed  = errors.New("the pull failed")
	errTimeout = fmt.Errorf("the pull is %w", console.ErrTimeout)
)

// Run pulls the image. If it is interrupted the job continues.
func Run(ctx context.Context, config Config) error {
	reference, err := image.Parse(config.Image)
	if err != nil {
		return fmt.Errorf("%w: image %q: %w", console.ErrUsage, config.Image, err)
	}
	if config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, config.Timeout, errTimeout)
		defer cancel()
	}
	job := newJob(config)
	err = config.API.Create(ctx, job)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w: this cluster does not have the CRD; install Refit first: %w", ErrFailed, err)
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return console.Refused(err)
	case err != nil:
		return console.Ended(ctx, err)
	}
	if err := config.Made.Begun(config.API.Scheme(), job); err != nil {
		return err
	}
	config.Output.Say("ImagePullJob %s: pull %s", job.Name, config.Image)
	if !config.Wait {
		return config.Made.Ended(config.API.Scheme(), job)
	}
	err = config.follow(ctx, job, reference)
	if err := config.Made.Ended(config.API.Scheme(), job); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the pull goes on\n  last:      %s\n  follow it: kubectl get imagepulljob %s --namespace=%s --watch\n  stop it:   kubectl delete imagepulljob %s --namespace=%s",
			console.Cause(ctx), cmp.Or(job.Status.Message, config.Output.Last()), job.Name, job.Namespace, job.Name, job.Namespace)
	} else if err != nil {
		return console.Begun(err)
	}
	return config.ended(job)
}

func newJob(config Config) *v1beta1.ImagePullJob {
	repository := config.Image[strings.LastIndexByte(config.Image, '/')+1:]
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, GenerateName: prefix(repository)}}
	job.Spec.Image = config.Image
	if config.Nodes != nil {
		job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: *config.Nodes}
	}
	job.Spec.Parallelism = new(intstr.FromInt32(config.Parallelism))
	job.Spec.PullSecrets = config.Secrets
	job.Spec.ImagePullPolicy = v1beta1.PullIfNotPresent
	if config.Always {
		job.Spec.ImagePullPolicy = v1beta1.PullAlways
	}
	job.Spec.CompletionPolicy = v1beta1.CompletionPolicy{Type: v1beta1.CompletionAlways, TTLSecondsAfterFinished: new(int32(kept))}
	return job
}

// prefix returns a prefix for a generated object name, with the characters of the repository's name that are allowed there.
func prefix(repository string) string {
	const longest = 40
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.SplitN(repository, "@", 2)[0])
	return "pull-" + strings.Trim(name[:min(len(name), longest)], "-") + "-"
}

// follow prints the progress of a job until the job has ended.
func (c Config) follow(ctx context.Context, job *v1beta1.ImagePullJob, reference image.Reference) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	key := client.ObjectKeyFromObject(job)
	silent := console.Silent{Output: c.Output, Kind: "ImagePullJobs", Feature: "images"}
	for {
		now := &v1beta1.ImagePullJob{} // empty: the client leaves fields that it does not read
		err := c.API.Get(ctx, key, now)
		if err == nil {
			now.DeepCopyInto(job)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case console.Unreachable(err): // the pull continues
			c.Output.Progress("trying again until the API server can be reached: " + err.Error())
		case err != nil:
			return err
		case job.Status.CompletionTime != nil:
			return nil
		default:
			c.Output.Progress(c.progress(ctx, job, reference))
			silent.See(job.Status.StartTime != nil)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// progress returns the number of nodes, and the bytes of the pulling nodes. Without permission to read NodeImages it
// contains no bytes.
func (c Config) progress(ctx context.Context, job *v1beta1.ImagePullJob, reference image.Reference) string {
	status := job.Status
	if status.StartTime == nil {
		return "waiting for refit-manager to take the job up"
	}
	text := fmt.Sprintf("%d of %s it, %d pull, %d failed", status.Succeeded, nodesHave(status.Desired), status.Active, status.Failed)
	if details := image.Details(status.Message); details != "" { // for example an unreadable pull secret
		text += "; " + details
	}
	var nodes v1beta1.NodeImageList
	if err := c.API.List(ctx, &nodes); err != nil {
		return text
	}
	var pulled, total int64
	for i := range nodes.Items {
		node := &nodes.Items[i]
		want, said := image.TagSpec(&node.Spec, reference), image.TagStatus(&node.Status, reference)
		if want == nil || said == nil || said.Version != want.Version || said.Phase != v1beta1.ImagePhasePulling {
			continue
		}
		pulled, total = pulled+said.PulledBytes, total+said.TotalBytes
	}
	if total > 0 {
		text += fmt.Sprintf("; %s of %s", imagecli.Bytes(pulled), imagecli.Bytes(total))
	}
	return text
}

// ended returns an error if the job has not succeeded.
func (c Config) ended(job *v1beta1.ImagePullJob) error {
	status := job.Status
	switch {
	case status.Desired == 0:
		return fmt.Errorf("%w: no node is selected", ErrFailed)
	case status.Succeeded == status.Desired:
		c.Output.Say("%d of %s %s", status.Succeeded, nodesHave(status.Desired), c.Image)
		return nil
	}
	nodes := slices.Clone(status.FailedNodes)
	slices.Sort(nodes)
	names := strings.Join(nodes[:min(len(nodes), shownNodes)], ", ")
	if len(nodes) > shownNodes {
		names += ", ..."
	}
	return fmt.Errorf("%w: ImagePullJob %s: %d of %s the image; not %s: %s", ErrFailed, job.Name, status.Succeeded, nodesHave(status.Desired), names, status.Message)
}

// nodesHave returns a number of nodes with the matching form of the verb.
func nodesHave(nodes int32) string {
	if nodes == 1 {
		return "1 node has"
	}
	return fmt.Sprintf("%d nodes have", nodes)
}
