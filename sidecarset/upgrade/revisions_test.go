package upgrade_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
)

// The hash does not cover volumes. If several revisions have the hash of a pod whose revision is not known by name, for example after
// OpenKruise, the pod is not compared with an arbitrary one of them: its update would be blocked by a volume that it does not have.
func TestPodOfOneOfSeveralRevisionsWithItsHashIsNotHeldBack(t *testing.T) {
	t.Parallel()
	mounted := func(c *v1beta1.SidecarContainer) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	data := func(medium corev1.StorageMedium) []corev1.Volume {
		return []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}}
	}
	w := newWorld(t, cold("log", "log:1", mounted))
	injected := w.target.Version
	injected.Revision = "logs-6d9f7c8b5d"
	for key, value := range annotation.Write(w.pod, &injected, annotation.Of(w.pod, "logs").UpdateTimestamp) {
		w.pod.Annotations[key] = value
	}
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Volumes = data("") })
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Volumes = data(corev1.StorageMediumMemory) })
	if len(w.revisions) != 3 || w.target.Hashes != injected.Hashes {
		t.Fatalf("%d revisions, hashes %v and %v", len(w.revisions), w.target.Hashes, injected.Hashes)
	}
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image, s.Volumes = "log:2", data("") })
	w.is("Outdated")
	w.update()
	w.is("Updated")
}

// The pod names its revision, by a hash written by this or by an earlier version of Refit: its update is blocked by the volume that it
// does have.
func TestPodOfOneOfSeveralRevisionsWithItsHashIsComparedWithTheOneThatItNames(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]bool{"a revision of this version": false, "one of an earlier version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("log", "log:1", func(c *v1beta1.SidecarContainer) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			}))
			if earlier {
				w.byEarlier()
			}
			w.spec(func(s *v1beta1.SidecarSetSpec) { s.Volumes = []corev1.Volume{{Name: "data"}} })
			if earlier { // so that there are two with the hash that the pod has
				again := w.revisions[0].DeepCopy()
				again.Name, again.Revision = "logs-again", 7
				again.Data.Raw = []byte(`{"spec":{"$patch":"replace","volumes":[{"name":"data"}],"containers":[{"name":"log","image":"log:1","volumeMounts":[{"name":"data","mountPath":"/data"}]}]}}`)
				w.revisions = append(w.revisions, again)
			}
			w.spec(func(*v1beta1.SidecarSetSpec) {})
			w.is("NotUpgradable: volume data has changed, and cannot in a running pod")
		})
	}
}

// Of the revisions of a SidecarSet one may have been written by somebody else.
func TestARevisionThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	broken := w.revisions[0].DeepCopy()
	broken.Name, broken.Data.Raw = "broken", []byte("broken")
	w.revisions = append([]*appsv1.ControllerRevision{broken}, w.revisions...)
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = cpu("200m") })
	w.is("Outdated")
	w.update()
	if got := w.pod.Spec.Containers[1].Resources.Requests.Cpu().String(); got != "200m" {
		t.Errorf("CPU %s", got)
	}
}

// Its own revision has expired, and another one says which hash without images the containers have with their defaults.
func TestPodOfAnExpiredRevisionOfAnEarlierVersionIsUpdated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.byEarlier()
	w.revisions[0].Data.Raw = []byte(`{"spec":{"$patch":"replace","containers":[{"name":"log","image":"log:0"}]}}`)
	w.image("log:2")
	w.is("Outdated")
	w.update()
	w.is("Updated")
}
