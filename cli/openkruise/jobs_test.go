package openkruise_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
)

func TestAnnotationsThatOpenKruiseIgnores(t *testing.T) {
	t.Parallel()
	set := newSet(func(set *v1beta1.SidecarSet) {
		set.Annotations = map[string]string{"sidecarset.refit.dev/service-account": "refit-sidecar"}
	})
	expect(t, clusterOf(set).OfSidecarSet(set),
		[]string{"its annotation sidecarset.refit.dev/service-account: refit-sidecar has an effect with Refit: new pods with the account default get this one"},
		[]string{"its annotation sidecarset.refit.dev/service-account has no effect"})
}

func TestSidecarsOfJobs(t *testing.T) {
	t.Parallel()
	const (
		to     = "container agent asks to be ended with its Job: Refit does that, kruise-manager does not, as its feature gate SidecarTerminator is off"
		from   = "container agent asks to be ended with its Job: Refit does that, kruise-manager only with the feature gate SidecarTerminator"
		ignore = "container agent has KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE, which has no effect: a sidecar that ends with another code than 0 makes the pod fail"
	)
	on := openkruise.Gates(managerWith("--feature-gates=SidecarTerminator=true"))
	for name, tc := range map[string]struct {
		variable string
		gates    map[string]bool
		to, from []string
	}{
		"with the gate":            {variable: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", gates: on},
		"without the gate":         {variable: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", gates: openkruise.Gates(managerWith()), to: []string{to}, from: []string{from}},
		"by an image":              {variable: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", gates: openkruise.Gates(managerWith()), to: []string{to}, from: []string{from}},
		"without a kruise-manager": {variable: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", from: []string{from}},
		"exit codes ignored":       {variable: "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", gates: on, to: []string{ignore}},
		"another variable":         {variable: "OTHER", gates: openkruise.Gates(managerWith())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newSet(func(set *v1beta1.SidecarSet) {
				set.Spec.Containers[0].Env = []corev1.EnvVar{{Name: tc.variable, Value: "true"}}
			})
			c := clusterOf(set)
			c.Gates = tc.gates
			expect(t, c.OfSidecarSet(set), tc.to, tc.from)
			w := &openkruise.Workload{Kind: "CronJob", Namespace: "shop", Name: "report"}
			w.Template.Spec.Containers = []corev1.Container{{Name: "agent", Env: []corev1.EnvVar{{Name: tc.variable, Value: "true"}}}}
			expect(t, c.OfWorkload(w), tc.to, tc.from)
		})
	}
}
