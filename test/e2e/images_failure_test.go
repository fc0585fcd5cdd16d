package e2e_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// onFirst bounds a job to the node whose containerd knows the misbehaving registry.
func (s *fixture) onFirst(retries, timeoutSeconds int32) func(*v1beta1.ImagePullJobSpec) {
	return func(spec *v1beta1.ImagePullJobSpec) {
		spec.Selector.Names = []string{s.registryNode()}
		spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: &retries, TimeoutSeconds: &timeoutSeconds}
	}
}

// Every failure ends in a phase and a message that says what it was, and is tried again as the policy says.
func TestRegistryFailuresAreReportedAndRetried(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	host := s.registry(faulty)
	for image, tc := range map[string]struct {
		retries, timeout int32
		ends             string
		says             []string
	}{
		"well":         {0, 60, "Complete", nil},
		"unauthorized": {0, 60, "Failed", []string{"401"}},
		"missing":      {0, 60, "Failed", []string{"not found"}},
		"limited":      {0, 60, "Failed", []string{"429"}},
		"away":         {1, 60, "Failed", []string{"attempt 2 of 2", "503"}},
		"away-once":    {2, 60, "Complete", nil},
		"stalls":       {0, 3, "Failed", []string{"timeoutSeconds"}},
		"wrong-digest": {0, 60, "Failed", []string{"digest"}},
	} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			s.pull("game", host+"/"+image+":v1", s.onFirst(tc.retries, tc.timeout))
			job := s.waitFor(tc.ends, "game")
			s.observed("message: %s", job.Status.Message)
			if !containsAll(job.Status.Message, tc.says) {
				t.Errorf("message %q, want %q", job.Status.Message, tc.says)
			}
			has := s.onNode(s.registryNode(), host+"/"+image+":v1") != ""
			if has != (tc.ends == "Complete") {
				t.Errorf("the node has the image: %v", has)
			}
		})
	}
}

// A job that is deleted, or whose deadline passes, does not go on pulling; one whose time to live is over is gone.
func TestPullsThatAreGivenUpEnd(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	host := s.registry(faulty)
	said := func(ctx context.Context, image string) (*v1beta1.ImageTagSpec, *v1beta1.ImageTagStatus, error) {
		object := &v1beta1.NodeImage{}
		err := s.Get(ctx, client.ObjectKey{Name: s.registryNode()}, object)
		spec, status := nodeImage(object, host+"/"+image, "v1")
		return spec, status, err
	}
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		s := newFixture(t)
		s.pull("game", host+"/slow:v1", s.onFirst(0, 600))
		s.await("bytes of the pull", func(ctx context.Context) (bool, error) {
			_, status, err := said(ctx, "slow")
			return status != nil && status.TotalBytes > 0 && status.PulledBytes > 0 && status.PulledBytes < status.TotalBytes, err
		})
		s.run("delete", "imagepulljob", "game")
		s.await("end of the pull", func(ctx context.Context) (bool, error) {
			spec, status, err := said(ctx, "slow")
			return spec == nil && status == nil, err
		})
		if s.onNode(s.registryNode(), host+"/slow:v1") != "" {
			t.Error("the image is on the node")
		}
	})
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		s := newFixture(t)
		s.pull("game", host+"/slow-deadline:v1", func(spec *v1beta1.ImagePullJobSpec) {
			s.onFirst(3, 5)(spec)
			spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(5))
		})
		job := s.waitFor("Failed", "game")
		s.observed("message: %s", job.Status.Message)
		s.await("end of the pull", func(ctx context.Context) (bool, error) {
			_, status, err := said(ctx, "slow-deadline")
			return status == nil || status.Phase == v1beta1.ImagePhaseFailed, err
		})
	})
	t.Run("time to live", func(t *testing.T) {
		t.Parallel()
		s := newFixture(t)
		s.pull("game", host+"/well:v1", func(spec *v1beta1.ImagePullJobSpec) {
			s.onFirst(0, 60)(spec)
			spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(2))
		})
		s.await("end of the job", func(ctx context.Context) (bool, error) {
			err := s.Get(ctx, s.key("game"), &v1beta1.ImagePullJob{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	})
}

// The update is about the pod's container; the pull is over before it is touched.
func TestImageIsOnTheNodeBeforeTheContainerIsStopped(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.gated(on(s.registryNode(), s.podOf("web", shell("app", obedient), shell("other", obedient))))
	said := s.updates("image", "pod/web", "app="+newImage)
	pulled, stopped := strings.Index(said, "has the new images"), strings.Index(said, "take the pod out of its Services")
	if pulled < 0 || stopped < pulled || s.onNode(before.Spec.NodeName, newImage) == "" {
		t.Errorf("said:\n%s", said)
	}
	s.restarted(before, "app", 1)
	s.untouched(before, "other")
	s.observed("said:\n%s", said)
}

func TestPullThatFailsLeavesThePodUnharmed(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.gated(s.podOf("web", shell("app", obedient)))
	said, code := s.set("image", "pod/web", "app="+missingImage+"-of-a-pod")
	if code != 1 || !containsAll(said, []string{"the pod has not been changed", "not found"}) {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	s.untouched(before, "app")
	if after := s.pod("web"); !podReady(after) || after.Spec.Containers[0].Image != image {
		t.Errorf("the pod is changed: ready %v, image %s", podReady(after), after.Spec.Containers[0].Image)
	}
}

func TestPullShowsBytesWhileTheContainerRuns(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	host := s.registry(faulty)
	s.gated(on(s.registryNode(), s.podOf("web", shell("app", obedient))))
	// The image has no program: what is looked at is over before it is started.
	said, _ := s.set("image", "pod/web", "app="+host+"/takes-its-time:v1", "--timeout=25s")
	if !strings.Contains(said, " MB of 4.2 MB") || !strings.Contains(said, "has the new images, after") {
		t.Errorf("said:\n%s", said)
	}
}
