package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

// Pulls creates ImagePullJobs until the context ends and deletes each while it is under way. The registry does not have
// the images, so that the daemons would go on to try.
func Pulls(ctx context.Context, c *cluster.Cluster, choice *rand.Rand) error {
	for n := 0; ctx.Err() == nil; n++ {
		job := newPullJob(c, n)
		// During an outage the next one will do; what matters is what was created and deleted.
		_ = call(ctx, func(ctx context.Context) error { return c.Create(ctx, job) })
		_ = cluster.Pause(ctx, time.Second+time.Duration(choice.Int64N(int64(4*time.Second))))
		for range 3 {
			err := call(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(c.Delete(ctx, job)) })
			if err == nil {
				break
			}
		}
	}
	return nil
}

// presentTime is the wait for a job of an image that is to be had. The judge says what it means that it takes longer.
const presentTime = 2 * time.Minute

// PullsOfWhatIsThere creates ImagePullJobs of an image that the registry has, each after the end of the one before, until
// the context ends.
func PullsOfWhatIsThere(ctx context.Context, c *cluster.Cluster) error {
	for n := 0; ctx.Err() == nil; n++ {
		job := newPullJob(c, n)
		job.Name, job.Spec.Image = fmt.Sprintf("present-%d", n), withoutDigest(c.Image)
		job.Spec.ImagePullPolicy = v1beta1.PullAlways
		if call(ctx, func(ctx context.Context) error { return client.IgnoreAlreadyExists(c.Create(ctx, job)) }) != nil {
			_ = cluster.Pause(ctx, time.Second)
			n--
			continue
		}
		_ = cluster.Until(ctx, "end of job "+job.Name, presentTime, func(ctx context.Context) bool {
			return c.Get(ctx, client.ObjectKeyFromObject(job), job) == nil && job.Status.CompletionTime != nil
		})
		_ = cluster.Pause(ctx, time.Second)
	}
	return nil
}

// call bounds a call, which is made even if the run is just then at its end.
func call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.CallTimeout)
	defer cancel()
	return do(ctx)
}

func newPullJob(c *cluster.Cluster, n int) *v1beta1.ImagePullJob {
	name := fmt.Sprintf("pull-%d", n)
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	job.Spec.Image = absentImage(c.Image, name)
	job.Spec.Parallelism = new(intstr.FromInt(len(c.Nodes)))
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: c.Nodes}
	job.Spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(10)), TimeoutSeconds: new(int32(30))}
	return job
}

// absentImage is an image of that tag in the repository of an image REPOSITORY:TAG@DIGEST.
func absentImage(image, tag string) string {
	image = withoutDigest(image)
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image + ":absent-" + tag
}

func withoutDigest(image string) string {
	image, _, _ = strings.Cut(image, "@")
	return image
}
