package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/fakeregistry"
)

// The node has the image, and the registry has it no longer: whoever asks the registry is told so. Another job, which does not ask, is created
// before or after in the same moment.
func TestAJobWithAlwaysAsksTheRegistryBesideAnotherJob(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	host, node := s.registry(map[string]served{"well": {Size: layer}}), s.registryNode()
	s.pull("well", host+"/well:v1", s.onFirst(0, 60))
	s.waitFor("Complete", "well")
	always := func(spec *v1beta1.ImagePullJobSpec) {
		s.onFirst(0, 60)(spec)
		spec.ImagePullPolicy = v1beta1.PullAlways
	}
	for i := range 6 {
		gone := fmt.Sprintf("%s/gone:v%d", host, i)
		s.ctr(node, "images", "tag", host+"/well:v1", gone)
		s.await("the image "+gone+" on the node", func(ctx context.Context) (bool, error) {
			id, err := s.runtimeOf(node).ImageID(ctx, gone)
			return id != "", err
		})
		asks, other := fmt.Sprint("asks-", i), fmt.Sprint("other-", i)
		if i%2 == 0 {
			s.pull(asks, gone, always)
			s.pull(other, gone, s.onFirst(0, 60))
		} else {
			s.pull(other, gone, s.onFirst(0, 60))
			s.pull(asks, gone, always)
		}
		if job := s.waitFor("Failed", asks); !strings.Contains(job.Status.Message, "not found") {
			t.Errorf("%s: %+v", asks, job.Status)
		}
	}
}

// A later job with less patience, of the same namespace or of another, ends neither the attempt of an earlier one nor its retries.
func TestALaterJobDoesNotReplaceThePolicyOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	s, other := newFixture(t), newFixture(t)
	images := map[string]served{"slow": {Size: layer, Fault: fakeregistry.Fault{BytesPerSecond: layer / 6}}}
	images["away"] = faulty["away"]
	host := s.registry(images)
	is := func(what, image string, so func(*v1beta1.ImageTagStatus) bool) {
		t.Helper()
		s.await(what, func(ctx context.Context) (bool, error) {
			object := &v1beta1.NodeImage{}
			err := s.Get(ctx, client.ObjectKey{Name: s.registryNode()}, object)
			_, status := nodeImage(object, host+"/"+image, "v1")
			return status != nil && so(status), err
		})
	}

	s.pull("patient", host+"/away:v1", s.onFirst(3, 60))
	is("an attempt that has failed", "away", func(status *v1beta1.ImageTagStatus) bool {
		return strings.Contains(status.Message, " of 4 failed")
	})
	s.pull("hasty", host+"/away:v1", s.onFirst(0, 1))
	other.pull("hasty", host+"/away:v1", s.onFirst(0, 1))

	s.pull("patient-slow", host+"/slow:v1", s.onFirst(0, 300))
	is("the attempt", "slow", func(status *v1beta1.ImageTagStatus) bool { return status.Phase == v1beta1.ImagePhasePulling })
	s.pull("hasty-slow", host+"/slow:v1", s.onFirst(0, 1))

	for _, name := range []string{"patient", "hasty"} { // jobs of one namespace share its pull
		if job := s.waitFor("Failed", name); !strings.Contains(job.Status.Message, "attempt 4 of 4 failed") {
			t.Errorf("%s: %+v", name, job.Status)
		}
	}
	if job := other.waitFor("Failed", "hasty"); !strings.Contains(job.Status.Message, "attempt 1 of 1 failed") {
		t.Errorf("of another namespace: %+v", job.Status)
	}
	for _, name := range []string{"patient-slow", "hasty-slow"} {
		if job := s.waitFor("Complete", name); job.Status.Succeeded != 1 {
			t.Errorf("%s: %+v", name, job.Status)
		}
	}
}
