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

// What kruise-manager of OpenKruise 07169cfac writes as kruise.io/sidecarset-hash and -without-image for the same manifests.
func TestHashesAreOfTheDefaultedSpec(t *testing.T) {
	t.Parallel()
	grpc := func(service *string) func(*v1beta1.SidecarContainer) {
		return func(c *v1beta1.SidecarContainer) {
			for _, probe := range []**corev1.Probe{&c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe} {
				*probe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: service}}}
			}
		}
	}
	plain := revision.Hashes{
		Full:         "f4z74444x5c84fw5v789f59d7fwbdd47dwvbw4bv9vwx4fxv24x4b488v4d54wc4",
		WithoutImage: "4424wfff8b57d47vb7684zc4bb5478vxwwdcz7dd2xdwbf4d4446424d4w29cwd5",
	}
	probed := revision.Hashes{
		Full:         "4z45wxw6v4zc44dz54b42v844b4z272fb7487z8797v8bc584z44cd4c95fvdzb6",
		WithoutImage: "25v9b87v6wzv4fbzxzv58f97xwz6d59f86xcv64z27v9c6d924dbbzfxb479w574",
	}
	for name, tc := range map[string]struct {
		spec *v1beta1.SidecarSetSpec
		want revision.Hashes
	}{
		"nothing given":   {spec(container("log", "log:1")), plain},
		"a default given": {spec(container("log", "log:1", func(c *v1beta1.SidecarContainer) { c.ImagePullPolicy = corev1.PullIfNotPresent })), plain},
		"gRPC probes":     {spec(container("log", "log:1", grpc(nil))), probed},
		"gRPC probes as an earlier version of Refit has stored them": {spec(container("log", "log:1", grpc(new("")))), probed},
		"many containers": {manyContainers(), revision.Hashes{
			Full:         "x79bz69vzvf864xx8d9vxx5784zzd9452bdv5vzddf8c7w2fx92dffx5zc5c4fz6",
			WithoutImage: "bz9zc788c8zf8z4z5z22798d48872vxvbwc7bfxb7z8c828vx497c488f62647f5",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := revision.HashesOf(tc.spec); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func manyContainers() *v1beta1.SidecarSetSpec {
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	return spec(container("a", "x"), container("b", "x:latest"), container("c", "localhost:5000/x"), container("d", "x:1"+digest),
		container("e", "x:latest"+digest), container("f", "UPPER"), container("g", ""), container("h", "x@sha256:short"))
}

func TestHashesCoverWhatOpenKruiseHashes(t *testing.T) {
	t.Parallel()
	base := func() *v1beta1.SidecarSetSpec { return spec(container("log", "log:1")) }
	for name, tc := range map[string]struct {
		change             func(*v1beta1.SidecarSetSpec)
		full, withoutImage bool // differ
	}{
		"image":           {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image = "log:2" }, true, false},
		"environment":     {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }, true, true},
		"order":           {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].PodInjectPolicy = v1beta1.AfterAppContainer }, true, true},
		"empty image":     {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = "e" }, true, true},
		"kind of upgrade": {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].UpgradeStrategy.UpgradeType = v1beta1.HotUpgrade }, true, true},
		"shared volumes":  {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].ShareVolumePolicy.Type = v1beta1.ShareVolumeEnabled }, true, true},
		"shared devices": {func(s *v1beta1.SidecarSetSpec) {
			s.Containers[0].ShareVolumeDevicePolicy = &v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumeEnabled}
		}, true, true},
		"variables of the pod": {func(s *v1beta1.SidecarSetSpec) {
			s.Containers[0].TransferEnv = []v1beta1.TransferEnvVar{{SourceContainerName: "app", EnvName: "A"}}
		}, true, true},
		"resources of the pod": {func(s *v1beta1.SidecarSetSpec) {
			s.Containers[0].ResourcesPolicy = &v1beta1.ResourcesPolicy{TargetContainersMode: v1beta1.TargetContainersSum}
		}, true, true},
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

// Beside a native sidecar OpenKruise hashes all init containers, and only with their images in the full hash.
func TestHashesCoverInitContainersBesideANativeSidecar(t *testing.T) {
	t.Parallel()
	of := func(image string) revision.Hashes {
		s := spec(container("log", "log:1"))
		s.InitContainers = []v1beta1.SidecarContainer{container("setup", image), container("mesh", "mesh:1", native)}
		return revision.HashesOf(s)
	}
	before, after := of("setup:1"), of("setup:2")
	if before.Full == after.Full || before.WithoutImage != after.WithoutImage {
		t.Errorf("%+v, then %+v", before, after)
	}
}
