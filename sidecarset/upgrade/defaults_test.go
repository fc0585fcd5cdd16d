package upgrade_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

func TestWritingADefaultChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"), cold("mesh", "mesh:1", native))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent })
	w.is("Updated")
	w.spec(defaults.Complete)
	w.is("Updated")
	if len(w.revisions) != 1 {
		t.Errorf("%d revisions", len(w.revisions))
	}
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].ImagePullPolicy = corev1.PullAlways })
	w.is("NotUpgradable: imagePullPolicy of container log has changed, and cannot in a running pod")
}

// byEarlier makes the revisions and the records of the pod as Refit did that stored no defaults.
func (w *world) byEarlier() {
	w.t.Helper()
	spec := &w.set.Spec
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{
		"$patch": "replace", "volumes": spec.Volumes, "containers": spec.Containers, "initContainers": spec.InitContainers, "imagePullSecrets": nil, "patchPodMetadata": nil,
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.revisions[len(w.revisions)-1].Data.Raw = raw
	injected := w.target.Version
	injected.Hashes = revision.AsWritten(spec)
	for key, value := range annotation.Write(w.pod, &injected, metav1.NewTime(w.now)) {
		w.pod.Annotations[key] = value
	}
	w.spec(func(*v1beta1.SidecarSetSpec) {}) // Refit is upgraded
}

func TestPodsOfAnEarlierVersionAreNotRolledAgain(t *testing.T) {
	t.Parallel()
	probe := func(c *v1beta1.SidecarContainer) {
		c.Resources = cpu("100m")
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: new("")}}}
	}
	w := newWorld(t, cold("log", "log:1", probe), cold("mesh", "mesh:1", native))
	w.byEarlier()
	w.is("Updated")
	w.spec(defaults.Complete)
	w.is("Updated")
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].LivenessProbe.GRPC.Service = nil })
	w.is("Updated")
	if len(w.writes) != 0 || len(w.revisions) != 1 {
		t.Errorf("writes %v, %d revisions", w.writes, len(w.revisions))
	}
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "log:2", cpu("200m")
	})
	w.is("Outdated")
	w.update()
	w.is("Updated")
	if got := w.pod.Spec.Containers[1]; got.Image != "log:2" || got.Resources.Requests.Cpu().String() != "200m" {
		t.Errorf("container %+v", got)
	}
	if got := annotation.Of(w.pod, "logs").Hash; got != w.target.Hashes.Full {
		t.Errorf("the updated pod has the hash %s", got)
	}
}

// A user may have written a default into the spec when the earlier version stored none: that was a revision of its own.
func TestRevisionsThatDifferInDefaultsAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.byEarlier()
	again := w.revisions[0].DeepCopy()
	again.Name, again.Revision = "logs-again", 2
	again.Data.Raw = []byte(`{"spec":{"$patch":"replace","containers":[{"name":"log","image":"log:1","imagePullPolicy":"IfNotPresent"}]}}`)
	w.revisions = append(w.revisions, again)
	w.spec(func(*v1beta1.SidecarSetSpec) {})
	w.is("Updated")
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image = "log:2" })
	w.is("Outdated")
}

func TestPullPolicyMayFollowTheTag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:latest")
	w.is("Outdated")
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].ImagePullPolicy = corev1.PullNever })
	w.is("NotUpgradable: imagePullPolicy of container log has changed, and cannot in a running pod")
}

// The pod keeps the policy with which it was created.
func TestPullPolicyOfAPodThatDidNotFollowTheTagStaysAnObstacle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", func(c *v1beta1.SidecarContainer) { c.ImagePullPolicy = corev1.PullNever }))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].ImagePullPolicy = "" })
	w.is("NotUpgradable: imagePullPolicy of container log has changed, and cannot in a running pod")
}
