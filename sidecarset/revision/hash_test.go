package revision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/revision"
)

func container(name, image string, change ...func(*v1beta1.SidecarContainer)) v1beta1.SidecarContainer {
	c := v1beta1.SidecarContainer{Container: corev1.Container{Name: name, Image: image}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func native(c *v1beta1.SidecarContainer) { c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways) }

func spec(containers ...v1beta1.SidecarContainer) *v1beta1.SidecarSetSpec {
	return &v1beta1.SidecarSetSpec{Containers: containers}
}

// Values that OpenKruise's own function returned: a wire format.
func TestHashesAreOpenKruises(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*v1beta1.SidecarSetSpec{
		"5662x672v59974vdzvf4bdfwc4v526wx5w7884vx5c7fc2f246v484v5988xb9z7": {Containers: []v1beta1.SidecarContainer{}},
		"x5vwx9w6vv4dv72c9w4c2f6v74fbwx545b45bbfz6z2dvf8w887xw86fvcb4cf48": {},
	} {
		if got := revision.HashesOf(s); got.Full != want || got.WithoutImage != want {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

func TestHashesCoverWhatOpenKruiseHashes(t *testing.T) {
	t.Parallel()
	base := func() *v1beta1.SidecarSetSpec { return spec(container("log", "log:1")) }
	for name, tc := range map[string]struct {
		change             func(*v1beta1.SidecarSetSpec)
		full, withoutImage bool // differ
	}{
		"image":        {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image = "log:2" }, true, false},
		"environment":  {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }, true, true},
		"order":        {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].PodInjectPolicy = v1beta1.AfterAppContainer }, true, true},
		"empty image":  {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = "e" }, true, true},
		"volumes":      {func(s *v1beta1.SidecarSetSpec) { s.Volumes = []corev1.Volume{{Name: "v"}} }, false, false},
		"pull secrets": {func(s *v1beta1.SidecarSetSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} }, false, false},
		"init container": {func(s *v1beta1.SidecarSetSpec) {
			s.InitContainers = []v1beta1.SidecarContainer{container("setup", "setup:1")}
		}, false, false},
		"native sidecar": {func(s *v1beta1.SidecarSetSpec) {
			s.InitContainers = []v1beta1.SidecarContainer{container("mesh", "mesh:1", native)}
		}, true, true},
		// What OpenKruise does not know does not change its hash, or pods could not be handed over.
		"version label": {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].VersionLabel = "log-version" }, false, false},
		"completion of hot upgrades": {func(s *v1beta1.SidecarSetSpec) {
			s.Containers[0].UpgradeStrategy.Completion = &v1beta1.HotUpgradeCompletion{TimeoutSeconds: new(int32(5))}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, s := revision.HashesOf(base()), base()
			tc.change(s)
			after := revision.HashesOf(s)
			if (before.Full != after.Full) != tc.full || (before.WithoutImage != after.WithoutImage) != tc.withoutImage {
				t.Errorf("full differs: %v, without image: %v", before.Full != after.Full, before.WithoutImage != after.WithoutImage)
			}
		})
	}
}
