package openkruise_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
)

// Each field that OpenKruise does not have is reported when it is used, with what happens without it.
func TestFieldsOfRefit(t *testing.T) {
	t.Parallel()
	for path, tc := range map[string]struct {
		use     func(*v1beta1.SidecarSetSpec)
		without string
	}{
		"podVolumes": {func(s *v1beta1.SidecarSetSpec) { s.PodVolumes = []string{"data"} }, "the volumes are not looked for"},
		"patchContainers": {func(s *v1beta1.SidecarSetSpec) {
			s.PatchContainers = []v1beta1.SidecarSetPatchContainer{{Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}
		}, "do not get these variables"},
		"patchPodMetadata[].labels": {func(s *v1beta1.SidecarSetSpec) {
			s.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{Labels: map[string]string{"example.com/a": "b"}, PatchPolicy: v1beta1.PatchRetain}}
		}, "do not get the labels"},
		"containers[].versionLabel":        {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].VersionLabel = "example.com/version" }, "do not get the label"},
		"injectionStrategy.conflictPolicy": {func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.ConflictPolicy = v1beta1.ConflictKeepPod }, "is replaced"},
		"injectionStrategy.failurePolicy":  {func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.FailurePolicy = v1beta1.InjectionIgnore }, "are refused while kruise-manager"},
		"injectionStrategy.engine":         {func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.Engine = v1beta1.EnginePolicy }, "injects as well as"},
		"injectionStrategy.allowedPodOverrides": {func(s *v1beta1.SidecarSetSpec) {
			s.InjectionStrategy.AllowedPodOverrides = []v1beta1.PodOverride{v1beta1.OverrideOptOut}
		}, "annotations of pods change nothing"},
		"injectionStrategy.repairPolicy": {func(s *v1beta1.SidecarSetSpec) { s.InjectionStrategy.RepairPolicy = v1beta1.RepairEvict }, "are not replaced"},
		"injectionStrategy.revision.missingPolicy": {func(s *v1beta1.SidecarSetSpec) {
			s.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: new("1"), MissingPolicy: "Skip"}
		}, "refused when the revision"},
		"updateStrategy.maxUnavailablePerWorkload": {func(s *v1beta1.SidecarSetSpec) {
			s.UpdateStrategy.MaxUnavailablePerWorkload = new(intstr.FromString("100%"))
		}, "all pods of a workload"},
		"updateStrategy.minReadySeconds":         {func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.MinReadySeconds = 5 }, "as soon as"},
		"updateStrategy.progressDeadlineSeconds": {func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.ProgressDeadlineSeconds = new(int32(5)) }, "no conditions"},
		"updateStrategy.pauseAfterFailedPods":    {func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.PauseAfterFailedPods = new(int32(1)) }, "not paused"},
		"updateStrategy.recreatePolicy":          {func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.RecreatePolicy = v1beta1.RecreateEvict }, "keep the old version"},
		"updateStrategy.prePullPolicy":           {func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.PrePullPolicy = v1beta1.PrePullAlways }, "when the containers have been stopped"},
		"containers[].upgradeStrategy.completion": {func(s *v1beta1.SidecarSetSpec) {
			s.Containers[0].UpgradeStrategy.Completion = &v1beta1.HotUpgradeCompletion{}
		}, "a hot upgrade has taken over"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			set := newSet(func(set *v1beta1.SidecarSet) { tc.use(&set.Spec) })
			c := clusterOf(set)
			c.Gates = nil
			from := differs(openkruise.FromRefit, c.OfSidecarSet(set))
			if len(from) != 1 || !strings.HasPrefix(from[0], path+": ") || !strings.Contains(from[0], tc.without) {
				t.Errorf("%q", from)
			}
		})
	}
}

// What Refit stores as a default is no field of Refit in use.
func TestDefaultsOfRefitsFieldsAreNoDifference(t *testing.T) {
	t.Parallel()
	set := newSet(func(set *v1beta1.SidecarSet) {
		set.Spec.InjectionStrategy.ConflictPolicy = v1beta1.ConflictOverride // is what OpenKruise does
		set.Spec.InjectionStrategy.FailurePolicy = v1beta1.InjectionFail
		set.Spec.InjectionStrategy.Engine, set.Spec.InjectionStrategy.RepairPolicy = v1beta1.EngineWebhook, v1beta1.RepairNone
		set.Spec.UpdateStrategy.RecreatePolicy, set.Spec.UpdateStrategy.PrePullPolicy = v1beta1.RecreateNever, v1beta1.PrePullNever
	})
	expect(t, clusterOf(set).OfSidecarSet(set), nil, nil)
}
