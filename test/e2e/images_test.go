package e2e_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// maxStatusWrites is how many writes of the status one image may need on a node.
const maxStatusWrites = 12

// testappImage is the image testapp by tag and by digest. Pods use it by digest, so that no node has the tag unless it
// was pulled by an ImagePullJob.
func (s *fixture) testappImage() (repository, tag, digest string) {
	s.t.Helper()
	i := slices.IndexFunc(s.deploy.Images, func(image string) bool { return strings.Contains(image, "/testapp:") })
	if i < 0 {
		s.t.Skip("needs the image testapp: hack/images.sh --tests")
	}
	name, digest, _ := strings.Cut(s.deploy.Images[i], "@")
	colon := strings.LastIndexByte(name, ':')
	return name[:colon], name[colon+1:], digest
}

// pull creates an ImagePullJob for the cluster's nodes: other tests create Nodes without a machine.
func (s *fixture) pull(name, image string, change func(*v1beta1.ImagePullJobSpec)) {
	s.t.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	job.Spec.Image = image
	job.Spec.Parallelism = new(intstr.FromInt32(2))
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: s.nodes}
	job.Spec.CompletionPolicy.Type = v1beta1.CompletionAlways
	if change != nil {
		change(&job.Spec)
	}
	s.check(s.Create(s.t.Context(), job), "create ImagePullJob %s", name)
}

// waitFor is kubectl wait for a condition of an ImagePullJob; it returns the job.
func (s *fixture) waitFor(condition, job string) *v1beta1.ImagePullJob {
	s.t.Helper()
	s.run("wait", "imagepulljob/"+job, "--for=condition="+condition, "--timeout="+patience.String())
	is := &v1beta1.ImagePullJob{}
	s.check(s.Get(s.t.Context(), s.key(job), is), "get ImagePullJob %s", job)
	return is
}

// nodeImage is what the NodeImage of a node says of a tag; nil where it says nothing.
func nodeImage(object *v1beta1.NodeImage, repository, tag string) (spec *v1beta1.ImageTagSpec, status *v1beta1.ImageTagStatus) {
	images, statuses := object.Spec.Images[repository], object.Status.ImageStatuses[repository]
	for i := range images.Tags {
		if images.Tags[i].Tag == tag {
			spec = &images.Tags[i]
		}
	}
	for i := range statuses.Tags {
		if statuses.Tags[i].Tag == tag {
			status = &statuses.Tags[i]
		}
	}
	return spec, status
}

// onNode is the runtime's ID of an image; empty where the node does not have it.
func (s *fixture) onNode(node, image string) string {
	s.t.Helper()
	id, err := s.runtimeOf(node).ImageID(s.t.Context(), image)
	s.check(err, "look for image %s on node %s", image, node)
	return id
}

// statusWrites counts the changes of each NodeImage's status until the returned function is called.
func (s *fixture) statusWrites() (stop func() map[string]int) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var list v1beta1.NodeImageList
	s.check(s.List(ctx, &list), "list NodeImages")
	events, err := s.Watch(ctx, &v1beta1.NodeImageList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	s.check(err, "watch NodeImages")
	generation, writes := map[string]int64{}, map[string]int{}
	for i := range list.Items {
		generation[list.Items[i].Name] = list.Items[i].Generation
	}
	var work sync.WaitGroup
	work.Go(func() {
		for event := range events.ResultChan() {
			object, ok := event.Object.(*v1beta1.NodeImage)
			if !ok {
				continue
			}
			if generation[object.Name] == object.Generation { // a write of the spec makes another generation
				writes[object.Name]++
			}
			generation[object.Name] = object.Generation
		}
	})
	return func() map[string]int {
		events.Stop()
		cancel()
		work.Wait()
		return writes
	}
}

// pulled fails the test unless every node reports the image and has it.
func (s *fixture) pulled(job *v1beta1.ImagePullJob, repository, tag, full string) {
	s.t.Helper()
	if nodes := int32(len(s.nodes)); job.Status.Desired != nodes || job.Status.Succeeded != nodes || job.Status.Failed != 0 || job.Status.CompletionTime == nil {
		s.t.Errorf("ImagePullJob: %+v", job.Status)
	}
	for _, node := range s.nodes {
		object := &v1beta1.NodeImage{}
		s.check(s.Get(s.t.Context(), client.ObjectKey{Name: node}, object), "get NodeImage %s", node)
		_, is := nodeImage(object, repository, tag)
		if is == nil || is.Phase != v1beta1.ImagePhaseSucceeded || is.Progress != 100 || !strings.HasPrefix(is.ImageID, repository+"@sha256:") || is.CompletionTime == nil {
			s.t.Errorf("NodeImage %s, tag %s: %+v", node, tag, is)
		}
		if s.onNode(node, full) == "" {
			s.t.Errorf("node %s does not have image %s", node, full)
		}
	}
}

// It is not parallel: it counts what is written.
func TestImagePullJobPullsOnEveryNode(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	repository, tag, digest := s.testappImage()
	for name, tc := range map[string]struct{ tag, image string }{
		"by tag":    {tag, repository + ":" + tag},
		"by digest": {digest, repository + "@" + digest},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			for _, node := range s.nodes {
				s.ctr(node, "images", "rm", "--sync", tc.image) // an image that is not there is no error
				runtime := s.runtimeOf(node)
				s.await("end of the image on node "+node, func(ctx context.Context) (bool, error) {
					id, err := runtime.ImageID(ctx, tc.image)
					return id == "", err
				})
			}
			writes := s.statusWrites()
			s.pull("game", tc.image, nil)
			s.pulled(s.waitFor("Complete", "game"), repository, tc.tag, tc.image)
			written := writes()
			for _, node := range s.nodes {
				s.observed("node %s: %d writes of the status", node, written[node])
				if written[node] < 1 || written[node] > maxStatusWrites {
					t.Errorf("%d writes of the status on node %s, want 1 to %d", written[node], node, maxStatusWrites)
				}
			}
			s.run("delete", "imagepulljob", "game")
			for _, node := range s.nodes {
				s.await("end of the pull on node "+node, func(ctx context.Context) (bool, error) {
					object := &v1beta1.NodeImage{}
					err := s.Get(ctx, client.ObjectKey{Name: node}, object)
					spec, status := nodeImage(object, repository, tc.tag)
					return err == nil && spec == nil && status == nil, err
				})
				object := &v1beta1.NodeImage{}
				if err := s.Get(t.Context(), client.ObjectKey{Name: node}, object); err != nil || len(object.ManagedFields) > 0 {
					t.Errorf("managedFields of NodeImage %s: %v, %v", node, object.ManagedFields, err)
				}
				if s.onNode(node, tc.image) == "" {
					t.Errorf("node %s has lost the image with the job", node)
				}
			}
		})
	}
}

// A tag that does not exist fails, says why, and holds up no other job.
func TestImagePullJobOfAMissingImageFails(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.pull("missing", missingImage, func(spec *v1beta1.ImagePullJobSpec) {
		spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(1))}
	})
	s.pull("present", image, nil)
	s.pulled(s.waitFor("Complete", "present"), "busybox", "1.36", image)
	job := s.waitFor("Failed", "missing")
	failed := slices.Sorted(slices.Values(job.Status.FailedNodes))
	if !slices.Equal(failed, slices.Sorted(slices.Values(s.nodes))) || !containsAll(job.Status.Message, []string{"nodes failed", "attempt 2 of 2 failed", "not found"}) {
		t.Errorf("failed nodes %q, message %q", failed, job.Status.Message)
	}
	s.observed("message of the job: %s", job.Status.Message)
	s.awaitEvent("PullImageFailed", "no-such-tag", "not found")
}

// Each image of a list is a job of its own, which goes with the list.
func TestImageListPullJobPullsEachImage(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "list"}}
	missing := missingImage + "-in-list" // another test's job would share the pull, and its policy
	list.Spec.Images = []string{image, missing}
	list.Spec.Parallelism = new(intstr.FromInt32(2))
	list.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: s.nodes}
	list.Spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(0))}
	list.Spec.CompletionPolicy.Type = v1beta1.CompletionAlways
	s.check(s.Create(t.Context(), list), "create ImageListPullJob")
	s.run("wait", "imagelistpulljob/list", "--for=condition=Failed", "--timeout="+patience.String())
	s.check(s.Get(t.Context(), s.key("list"), list), "get ImageListPullJob")
	failed := list.Status.FailedImageStatuses
	if list.Status.Completed != 2 || list.Status.Succeeded != 1 || len(failed) != 1 || failed[0].Name != missing || !strings.Contains(failed[0].Message, "not found") {
		t.Errorf("%+v", list.Status)
	}
	s.run("delete", "imagelistpulljob", "list")
	s.await("end of the list's jobs", func(ctx context.Context) (bool, error) {
		var jobs v1beta1.ImagePullJobList
		err := s.List(ctx, &jobs, client.InNamespace(s.namespace))
		return len(jobs.Items) == 0, err
	})
}

// refit-manager reads pull secrets where it has been allowed to, says so where not, and its copies last as long as the job.
// The test is not parallel: no other job needs copies.
func TestPullSecretsAreReadOnlyWhereAllowed(t *testing.T) {
	s := newFixture(t)
	s.run("create", "secret", "docker-registry", "registry", "--docker-server=docker.io", "--docker-username=u", "--docker-password=p")
	s.pull("game", missingImage, func(spec *v1beta1.ImagePullJobSpec) {
		spec.PullSecrets = []string{"registry"}
		spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(1))}
	})
	copies := func(ctx context.Context) (int, error) {
		var list corev1.SecretList
		err := s.List(ctx, &list, client.InNamespace("kruise-daemon-config"), client.HasLabels{"refit.dev/pull-secret-copy-by"})
		return len(list.Items), err
	}
	s.await("message about the Secret", func(ctx context.Context) (bool, error) {
		job := &v1beta1.ImagePullJob{}
		err := s.Get(ctx, s.key("game"), job)
		return containsAll(job.Status.Message, []string{"refit-pull-secret-reader", s.namespace}), err
	})
	if n, err := copies(t.Context()); err != nil || n != 0 {
		t.Errorf("%d copies before the manager may read the Secret, error %v", n, err)
	}
	s.run("create", "rolebinding", "pull", "--clusterrole=refit-pull-secret-reader", "--serviceaccount="+systemNamespace+":refit-manager")
	s.await("copy of the Secret", func(ctx context.Context) (bool, error) {
		n, err := copies(ctx)
		return n == 1, err
	})
	job := s.waitFor("Failed", "game")
	if strings.Contains(job.Status.Message, "secret") { // the daemon has read the copy
		t.Errorf("message %q", job.Status.Message)
	}
	s.await("end of the copy", func(ctx context.Context) (bool, error) {
		n, err := copies(ctx)
		return n == 0, err
	})
}
