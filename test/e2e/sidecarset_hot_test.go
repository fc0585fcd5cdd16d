package e2e_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

// pushed is the full name of an image that hack/images.sh --tests has pushed.
func (s *fixture) pushed(name string) string {
	s.t.Helper()
	i := slices.IndexFunc(s.deploy.Images, func(image string) bool { return strings.Contains(image, "/"+name+":") })
	if i < 0 {
		s.t.Skipf("needs the image %s: hack/images.sh --tests", name)
	}
	return s.deploy.Images[i]
}

// A server is upgraded twice, from container to container and back, while clients with old and with new connections send
// requests: examples/hotupgrade with its SidecarSet.
func TestHotUpgradeUnderLoadLosesNoRequest(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	manifest, err := os.ReadFile("../../examples/hotupgrade/sidecarset.yaml")
	s.check(err, "read example")
	var example v1beta1.SidecarSet
	s.check(yaml.UnmarshalStrict(manifest, &example), "read example")
	example.Spec.Containers[0].Image = s.pushed("hotupgrade")
	example.Spec.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = s.pushed("hotupgrade-idle")
	containers, err := yaml.Marshal(map[string]any{"containers": example.Spec.Containers, "volumes": example.Spec.Volumes})
	s.check(err, "write example")
	json, err := yaml.YAMLToJSON(containers)
	s.check(err, "write example")
	set := s.sidecarSet("hot", strings.TrimSuffix(strings.TrimPrefix(string(json), "{"), "}"))
	pod := selected("hot", s.podOf("web", shell("app", obedient)))
	s.knows(pod, "server-1")
	web := s.start(pod)

	load := s.podOf("load", corev1.Container{
		Name: "load", Image: s.pushed("hotupgrade-load"), Args: []string{"--address=" + web.Status.PodIP + ":8080"},
	})
	load.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.start(load)
	s.awaitTraffic()
	for i, image := range []string{"hotupgrade-next", "hotupgrade"} {
		s.replacesImage(set, s.pushed(image))
		working := []string{`{"server":"server-2"}`, `{"server":"server-1"}`}[i]
		s.awaitPod("web", "to work in "+working, func(pod *corev1.Pod) bool {
			idle := containerOf(pod, []string{"server-1", "server-2"}[i])
			return pod.Annotations[v1beta1.AnnotationHotUpgradeWorking] == working && idle.Image == s.pushed("hotupgrade-idle") && podReady(pod)
		})
		s.awaitTraffic()
	}
	s.run("exec", "load", "--", "/load", "stop")
	s.awaitPod("load", "to end", func(pod *corev1.Pod) bool { return statuses(pod)[0].State.Terminated != nil })
	var total traffic.Interval
	s.await("what the load has counted", func(ctx context.Context) (bool, error) {
		var err error
		_, total, err = s.traffic(ctx)
		return err == nil, nil
	})
	t.Logf("%d requests, answered by %v, slowest %.1f ms, %d connections kept, %d others", total.Requests(), total.Answers, total.Slowest, total.Kept, total.Opened)
	if total.Failed > 0 || total.Refused > 0 {
		t.Errorf("%d requests failed, %d were refused: %s", total.Failed, total.Refused, total.Error)
	}
	if total.Kept != 8 {
		t.Errorf("8 clients that keep their connection opened %d: connections were closed", total.Kept)
	}
	if len(total.Answers) != 3 {
		t.Errorf("answers of %v, want three versions", slices.Collect(maps.Keys(total.Answers)))
	}
	s.same(web)
	s.untouched(web, "app")
}

// replacesImage changes the image of the first container of a SidecarSet.
func (s *fixture) replacesImage(set *v1beta1.SidecarSet, to string) {
	s.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Spec.Containers[0].Image = to
		return s.Update(s.t.Context(), set)
	})
	s.check(err, "update SidecarSet")
}

// traffic is what the pod load has printed, with an error before its end.
func (s *fixture) traffic(ctx context.Context) (intervals []traffic.Interval, total traffic.Interval, err error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience/10)
	defer cancel()
	out, err := s.kubectl(ctx, "", "--namespace", s.namespace, "logs", "load")
	if err != nil {
		return nil, total, err
	}
	return traffic.Read(strings.NewReader(out))
}

// awaitTraffic waits until the load has sent requests for a second.
func (s *fixture) awaitTraffic() {
	s.t.Helper()
	first := -1
	s.await("requests", func(ctx context.Context) (bool, error) {
		intervals, _, err := s.traffic(ctx)
		if !errors.Is(err, traffic.ErrUnfinished) {
			return false, nil
		}
		if first < 0 {
			first = len(intervals)
		}
		return len(intervals) >= first+10, nil
	})
}
