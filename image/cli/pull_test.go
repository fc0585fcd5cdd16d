package cli_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	imagecli "github.com/refit-project/refit/image/cli"
	"github.com/refit-project/refit/internal/kube"
)

const (
	mb       = 1_000_000
	newImage = "registry.test/shop:2"
)

// cluster has a manager and a daemon that need a second each, and a registry of 10 MB a second.
type cluster struct {
	made      []*v1beta1.ImagePullJob
	deleted   []string
	createErr error
	nodeErr   error
	noManager bool
	noNode    bool // the node has no NodeImage
	noDaemon  bool
	size      int64
	failure   string
	began     time.Time
	away      [2]time.Duration // from when until when the API server is away, after the job was created
}

func (c *cluster) Create(_ context.Context, job *v1beta1.ImagePullJob) (*v1beta1.ImagePullJob, error) {
	if c.createErr != nil {
		return nil, c.createErr
	}
	stored := job.DeepCopy()
	stored.Name = fmt.Sprintf("%s%d", job.GenerateName, len(c.made))
	c.made, c.began = append(c.made, stored), time.Now()
	return stored, nil
}

func (c *cluster) age() time.Duration { return time.Since(c.began) }

func (c *cluster) pulled() int64 { return min(c.size, int64((c.age()-2*time.Second).Seconds()*10*mb)) }

func (c *cluster) Get(_ context.Context, _, name string) (*v1beta1.ImagePullJob, error) {
	if age := c.age(); age >= c.away[0] && age < c.away[1] {
		return nil, apierrors.NewServiceUnavailable("away")
	}
	i := slices.IndexFunc(c.made, func(job *v1beta1.ImagePullJob) bool { return job.Name == name })
	job := c.made[i].DeepCopy()
	if c.noManager || c.age() < time.Second {
		return job, nil
	}
	now := metav1.Now()
	job.Status.StartTime, job.Status.Desired, job.Status.Active = &now, 1, 1
	switch {
	case c.noNode:
		job.Status.Desired, job.Status.Active, job.Status.CompletionTime = 0, 0, &now
	case c.noDaemon || c.pulled() < c.size:
	case c.failure != "":
		job.Status.Active, job.Status.Failed, job.Status.Message, job.Status.CompletionTime = 0, 1, c.failure, &now
	default:
		job.Status.Active, job.Status.Succeeded, job.Status.CompletionTime = 0, 1, &now
	}
	return job, nil
}

func (c *cluster) Delete(ctx context.Context, job *v1beta1.ImagePullJob) error {
	c.deleted = append(c.deleted, job.Name)
	return ctx.Err()
}

func (c *cluster) Node(context.Context, string) (*v1beta1.NodeImage, error) {
	if c.nodeErr != nil {
		return nil, c.nodeErr
	}
	node := &v1beta1.NodeImage{}
	if c.noManager || c.age() < time.Second {
		return node, nil
	}
	node.Spec.Images = map[string]v1beta1.ImageSpec{"registry.test/shop": {Tags: []v1beta1.ImageTagSpec{{Tag: "2", Version: 3}}}}
	// What the node said of an earlier pull is not of this one.
	said := v1beta1.ImageTagStatus{Tag: "2", Version: 2, Phase: v1beta1.ImagePhaseSucceeded}
	if !c.noDaemon && c.age() > 2*time.Second {
		said = v1beta1.ImageTagStatus{Tag: "2", Version: 3, Phase: v1beta1.ImagePhasePulling, PulledBytes: c.pulled(), TotalBytes: c.size}
	}
	node.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"registry.test/shop": {Tags: []v1beta1.ImageTagStatus{said}}}
	return node, nil
}

func pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "uid"}}
	pod.Spec.NodeName, pod.Spec.ImagePullSecrets = "node-1", []corev1.LocalObjectReference{{Name: "registry"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", ImagePullPolicy: corev1.PullIfNotPresent}, {Name: "log", ImagePullPolicy: corev1.PullAlways}}
	return pod
}

// pullIn pulls the new image for one container or both, and returns what was told meanwhile.
func pullIn(ctx context.Context, c *cluster, images map[string]string) (told []string, err error) {
	jobs := imagecli.Jobs{Open: func(context.Context) (imagecli.API, error) { return c, nil }}
	err = jobs.Pull(ctx, pod(), images, func(text string) { told = append(told, text) })
	return told, err
}

func TestPullReportsBytesAndReturnsWhenTheNodeHasTheImage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{size: 50 * mb}
		told, err := pullIn(t.Context(), c, map[string]string{"app": newImage})
		if err != nil || len(c.deleted) > 0 {
			t.Fatalf("%v; deleted %q", err, c.deleted)
		}
		if !strings.HasPrefix(told[0], "waiting for node node-1") || !slices.Contains(told, "pulling registry.test/shop:2, 25.0 MB of 50.0 MB") {
			t.Errorf("told %q", told)
		}
		job := c.made[0]
		if job.Spec.Image != newImage || !slices.Equal(job.Spec.Selector.Names, []string{"node-1"}) || !slices.Equal(job.Spec.PullSecrets, []string{"registry"}) ||
			job.Spec.ImagePullPolicy != v1beta1.PullIfNotPresent || job.OwnerReferences[0].UID != "uid" || *job.Spec.CompletionPolicy.TTLSecondsAfterFinished == 0 {
			t.Errorf("%+v", job)
		}
	})
}

// The API server is restarted during the pull, which goes on.
func TestPullOutlastsAnOutageOfTheAPIServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{size: 500 * mb, away: [2]time.Duration{3 * time.Second, 33 * time.Second}}
		told, err := pullIn(t.Context(), c, map[string]string{"app": newImage})
		if err != nil || len(c.deleted) > 0 || len(c.made) != 1 {
			t.Fatalf("%v; %d jobs, deleted %q", err, len(c.made), c.deleted)
		}
		if !slices.ContainsFunc(told, func(text string) bool {
			return strings.Contains(text, "the API server cannot be reached, trying again: away")
		}) {
			t.Errorf("told %q", told)
		}
	})
}

func TestOneImageOfTwoContainersIsPulledOnceAndAsKubeletWould(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{size: mb}
		_, err := pullIn(t.Context(), c, map[string]string{"app": newImage, "log": newImage})
		if err != nil || len(c.made) != 1 || c.made[0].Spec.ImagePullPolicy != v1beta1.PullAlways {
			t.Errorf("%v, %+v", err, c.made)
		}
	})
}

func TestWhyNothingIsPulled(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "imagepulljobs"}, "", errors.New("no"))
	for name, tt := range map[string]struct {
		cluster cluster
		want    error
		says    string
		deleted bool
	}{
		"no manager":            {cluster{noManager: true}, image.ErrNotBegun, "refit-manager has not taken it up", true},
		"no daemon":             {cluster{noDaemon: true, size: mb}, image.ErrNotBegun, "refit-daemon on node node-1 has not taken it up", true},
		"no NodeImage":          {cluster{noNode: true}, image.ErrNotBegun, "node-1 has no NodeImage", false},
		"not allowed":           {cluster{createErr: forbidden}, image.ErrNotBegun, "forbidden", false},
		"the registry fails":    {cluster{size: mb, failure: "node-1: not found"}, image.ErrFailed, "node-1: not found", false},
		"node not to be read":   {cluster{size: mb, nodeErr: forbidden}, nil, "", false},
		"nothing served":        {cluster{createErr: apierrors.NewNotFound(schema.GroupResource{}, "")}, image.ErrNotBegun, "not found", false},
		"the API server is odd": {cluster{createErr: apierrors.NewInternalError(errors.New("odd"))}, nil, "odd", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := tt.cluster
				_, err := pullIn(t.Context(), &c, map[string]string{"app": newImage})
				if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v with %q", err, tt.want, tt.says)
				}
				if tt.want == nil && (errors.Is(err, image.ErrNotBegun) || errors.Is(err, image.ErrFailed)) {
					t.Errorf("%v", err)
				}
				if deleted := len(c.deleted) > 0; deleted != tt.deleted {
					t.Errorf("deleted %q", c.deleted)
				}
			})
		})
	}
}

func TestClusterWithoutImagePullJobs(t *testing.T) {
	t.Parallel()
	jobs := imagecli.Jobs{Open: func(context.Context) (imagecli.API, error) { return nil, kube.ErrImagePullJobsNotServed }}
	if err := jobs.Pull(t.Context(), pod(), map[string]string{"app": newImage}, nil); !errors.Is(err, image.ErrNotBegun) {
		t.Error(err)
	}
}

func TestCancelledPullIsDeletedSoThatTheNodeStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{size: 1000 * mb}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := pullIn(ctx, c, map[string]string{"app": newImage})
		if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(c.deleted, []string{"refit-web-0-0"}) {
			t.Errorf("%v; deleted %q", err, c.deleted)
		}
		if seconds := *c.made[0].Spec.CompletionPolicy.ActiveDeadlineSeconds; seconds > 30 {
			t.Errorf("activeDeadlineSeconds %d", seconds)
		}
	})
}
