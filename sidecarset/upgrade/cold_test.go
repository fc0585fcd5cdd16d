package upgrade_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

func TestImageIsUpdatedByOneWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.is("Updated")
	w.image("log:2")
	w.is("Outdated")
	w.write(w.target.Step(w.pod, true, w.now))
	w.is("Updated, in flight: waiting for kubelet to see the change of container log")
	w.kubelet()
	w.is("Updated")
	if !slices.Equal(w.writes, []inplace.StepKind{inplace.StepWrite}) || w.restarts["log"] != 1 || w.restarts["app"] != 0 {
		t.Errorf("writes %v, restarts %v", w.writes, w.restarts)
	}
	injected := annotation.Of(w.pod, "logs")
	if injected.Hash != w.target.Hashes.Full || injected.WithoutImage != w.target.Hashes.WithoutImage || injected.ControllerRevision != w.target.Revision {
		t.Errorf("%+v", injected)
	}
	// OpenKruise judges the update by this annotation.
	if state := w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState]; !strings.Contains(state, `"lastContainerStatuses":{"log":{"imageID":"sha256:log:1"}}`) {
		t.Error(state)
	}
	if step, err := w.target.Step(w.pod, true, w.now); step != nil || err != nil {
		t.Errorf("an updated pod is written again: %+v, %v", step, err)
	}
	if working, ok := w.pod.Annotations[v1beta1.AnnotationHotUpgradeWorking]; ok {
		t.Errorf("a pod without hot upgrades says which container works: %s", working)
	}
}

// A pod that OpenKruise has injected and updated, with annotations as it writes them.
func TestPodOfOpenKruiseIsTakenOverWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("agent", "x/agent:2"))
	hashes := w.target.Hashes
	delete(w.pod.Annotations, v1beta1.AnnotationSidecarSetList)
	maps.Copy(w.pod.Annotations, map[string]string{
		v1beta1.AnnotationSidecarSetHash: `{"logs":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"` + hashes.Full +
			`","sidecarSetName":"logs","sidecarList":["agent"],"controllerRevision":"logs-6d9f7c8b5d"}}`,
		v1beta1.AnnotationSidecarSetHashWithoutImage: `{"logs":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"` + hashes.WithoutImage +
			`","sidecarSetName":"logs","sidecarList":["agent"]}}`,
		v1beta1.AnnotationSidecarSetList:               "logs",
		v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"logs":{"revision":"stale","updateTimestamp":"2026-01-02T04:00:00Z","lastContainerStatuses":{"agent":{"imageID":"docker.io/x/agent@sha256:aa"}}}}`,
	})
	w.is("Updated")
	w.image("x/agent:3")
	w.update()
	w.is("Updated")
	if w.restarts["agent"] != 1 || len(w.writes) != 1 {
		t.Errorf("restarts %v, writes %v", w.restarts, w.writes)
	}
}

// Defect 16 of the peer: the hash annotation alone says that a pod is updated.
func TestAnnotationsCannotFakeAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:2")
	w.forge()
	w.is("Outdated")
	w.update()
	w.is("Updated")
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
	})
	w.forge()
	w.is("NotUpgradable: env LEVEL of container log is not as in the spec")
}

func TestReasonIsReportedWhereAPodCannotBeUpdatedInPlace(t *testing.T) {
	t.Parallel()
	withVolume := func(c *v1beta1.SidecarContainer) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "conf", MountPath: "/conf"}}
	}
	for name, tc := range map[string]struct {
		change func(*v1beta1.SidecarSetSpec)
		want   string
	}{
		"environment": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
			},
			"NotUpgradable: env LEVEL of container log is not as in the spec; env of container log has changed, and cannot in a running pod",
		},
		"command and arguments": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Containers[0].Command, s.Containers[0].Args = []string{"log"}, []string{"--all"}
			},
			"NotUpgradable: command of container log is not as in the spec; args of container log is not as in the spec; " +
				"args of container log has changed, and cannot in a running pod; command of container log has changed, and cannot in a running pod",
		},
		"block device": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "raw", DevicePath: "/dev/raw"}}
				s.Volumes = []corev1.Volume{{Name: "raw"}}
			},
			"NotUpgradable: volumeDevices of container log has changed, and cannot in a running pod; volume raw has changed, and cannot in a running pod",
		},
		"resources that depend on the pod": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Containers[0].Resources = cpu("2")
				s.Containers[0].ResourcesPolicy = &v1beta1.ResourcesPolicy{}
			},
			"NotUpgradable: resourcesPolicy of container log has changed, and cannot in a running pod",
		},
		"position": {
			func(s *v1beta1.SidecarSetSpec) { s.Containers[0].PodInjectPolicy = v1beta1.AfterAppContainer },
			"NotUpgradable: podInjectPolicy of container log has changed, and cannot in a running pod",
		},
		// Defect 5 of the peer: the hash ignores volumes, so the new image gets the old volume.
		"two volumes": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Containers[1].VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}}
				s.Volumes = []corev1.Volume{{Name: "a"}, {Name: "conf"}}
			}, "NotUpgradable: volumeMounts of container other has changed, and cannot in a running pod; volume a has changed, and cannot in a running pod; volume conf has changed, and cannot in a running pod",
		},
		"a container that is to be upgraded hot": {
			func(s *v1beta1.SidecarSetSpec) { hot(&s.Containers[1]) },
			"NotUpgradable: the pod has no container other-1; the pod has no container other-2; upgradeType of container other has changed, and cannot in a running pod",
		},
		"source of a volume alone": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "new"}}}}}
			}, "NotUpgradable: volume conf has changed, and cannot in a running pod",
		},
		"source of a volume, with the image": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Containers[0].Image = "log:2"
				s.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "new"}}}}}
			}, "NotUpgradable: volume conf has changed, and cannot in a running pod",
		},
		"a field of a newer Kubernetes": {
			func(s *v1beta1.SidecarSetSpec) {
				s.Containers[0].Unknown = v1beta1.UnknownFields{"futureField": []byte(`{"a":"b"}`)}
			},
			"NotUpgradable: futureField of container log has changed, and cannot in a running pod",
		},
		"a container less": {
			func(s *v1beta1.SidecarSetSpec) { s.Containers = s.Containers[:1] },
			"NotUpgradable: container other has been removed from the spec, and cannot be from the pod",
		},
		"a container more": {
			func(s *v1beta1.SidecarSetSpec) { s.Containers = append(s.Containers, cold("new", "new:1")) },
			"NotUpgradable: the pod has no container new",
		},
		"pull secrets do not matter to running pods": {
			func(s *v1beta1.SidecarSetSpec) {
				s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			}, "Updated",
		},
		"the label that names a version": {
			func(s *v1beta1.SidecarSetSpec) { s.Containers[0].VersionLabel = "log-version" }, "Updated",
		},
		"volumes that no sidecar mounts": {
			func(s *v1beta1.SidecarSetSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: "unused"}) }, "Updated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("log", "log:1", withVolume), cold("other", "other:1"))
			w.spec(tc.change)
			w.is(tc.want)
		})
	}
}

func TestResourcesAreResizedAndThenTheImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) {
		s.Containers[0].Image, s.Containers[0].Resources = "log:2", cpu("200m")
	})
	w.is("Outdated")
	w.write(w.target.Step(w.pod, true, w.now))
	if hash := annotation.Of(w.pod, "logs").Hash; hash == w.target.Hashes.Full {
		t.Error("the pod says that it is updated before it is")
	}
	w.is("Outdated, in flight: resize container log")
	for w.write(w.target.Step(w.pod, false, w.now)) {
		w.kubelet()
	}
	w.is("Updated")
	container := w.pod.Spec.Containers[1]
	if container.Image != "log:2" || container.Resources.Requests.Cpu().String() != "200m" {
		t.Errorf("%+v, writes %v", container, w.writes)
	}
	w.pod.Spec.Containers[1].Resources.Requests = cpu("5").Requests // by an autoscaler
	w.kubelet()
	w.is("Updated")
}

func TestRemovedRequestIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = corev1.ResourceRequirements{} })
	_, err := w.target.Step(w.pod, true, w.now)
	if refused := (*plan.RefusedError)(nil); !errors.As(err, &refused) || !refused.Has(plan.ReasonRemovedResource) {
		t.Errorf("error %v", err)
	}
}

func TestNativeSidecarIsUpdatedInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("mesh", "mesh:1", native))
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.InitContainers = append(s.InitContainers, cold("setup", "setup:1")) })
	w.is("Outdated") // of an init container that runs once nothing is changed but the hash
	w.update()
	if w.restarts["mesh"] != 0 {
		t.Errorf("restarts %v", w.restarts)
	}
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.InitContainers[0].Image = "mesh:2" })
	w.update()
	w.is("Updated")
	if w.restarts["mesh"] != 1 {
		t.Errorf("restarts %v", w.restarts)
	}
}

func TestRollbackRepairsAFaultyImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.faulty["bad"] = true
	w.image("bad")
	w.update()
	w.is("Updated, in flight, failed: container log: no such image")
	w.image("log:1")
	w.is("Outdated, in flight, failed: container log: no such image")
	w.update()
	w.is("Updated")
}

// Defect of the peer (issue 2253): a rollout waits for ever for an update that is never reported as finished. Here two tags are
// one digest, and the runtime shows the other tag.
func TestUpdateThatIsNeverReportedIsOverAfterAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:1-again")
	w.update()
	status := &w.pod.Status.ContainerStatuses[1]
	status.Image, status.ImageID = "log:1", "sha256:log:1"
	until := w.now.Add(59 * time.Second) // a second after it was begun
	if v := w.judge(); !v.InFlight || !v.Again.Equal(until) {
		t.Errorf("%+v, want again at %s", v, until)
	}
	w.now = until
	w.is("Updated")
	w.pod.Status.ObservedGeneration--
	if v := w.judge(); !v.InFlight {
		t.Errorf("a pod of which kubelet has not seen the change counts as updated: %+v", v)
	}
	w.pod.Status.ObservedGeneration++
	status.Ready = false
	for _, later := range []time.Duration{0, time.Hour} {
		w.now = w.now.Add(later)
		if v := w.judge(); !v.InFlight || !v.Again.IsZero() && !v.Again.After(w.now) {
			t.Errorf("a container that is not ready counts as updated, or the pod is looked at again at once: %+v", v)
		}
	}
}

func TestImagesOfATarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"), cold("mesh", "mesh:1", native), cold("proxy", "proxy:1", hot))
	if got := w.target.Images(); !slices.Equal(got, []string{"empty:1", "log:1", "mesh:1", "proxy:1"}) {
		t.Error(got)
	}
	var none upgrade.History
	if got := upgrade.NewTarget(w.set, "", 1, none).Images(); len(got) != 4 {
		t.Error(got)
	}
}
