package doctor_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/refit-project/refit/internal/doctor"
)

// A feature that is turned off needs no policies.
func TestPoliciesOfTheFeaturesAreInForce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy string   // that is not there
		flags  []string // of refit-manager
		result doctor.Result
		words  string
	}{
		"InPlaceUpdatePolicies for workloads of others": {"refit-inplaceupdatepolicy", nil, doctor.Warning, "not in force: refit-inplaceupdatepolicy: what they refuse is admitted, from any user"},
		"pods without their sidecars":                   {"refit-sidecarset-required", nil, doctor.Warning, "refit-sidecarset-required: what they refuse"},
		"reserved labels by probes":                     {"refit-podprobemarker", nil, doctor.Warning, "refit-podprobemarker: what they refuse"},
		"the record of a daemon":                        {"refit-daemon-record", nil, doctor.Warning, "refit-daemon-record: what they refuse"},
		"revisions of others":                           {"refit-manager-revisions", nil, doctor.Warning, "refit-manager-revisions: the programs may write more"},
		"rollouts of nobody":                            {"refit-manager-rollouts", []string{"--restart-rollouts=false"}, doctor.Warning, "refit-manager-rollouts: the programs"},
		"no InPlaceUpdatePolicies":                      {"refit-inplaceupdatepolicy", []string{"--in-place-updates=false"}, doctor.OK, "12 of 12"},
		"no SidecarSets":                                {"refit-sidecarset-required", []string{"--sidecar-sets=false"}, doctor.OK, "14 of 14"},
		"no probes":                                     {"refit-podprobemarker", []string{"--pod-probes=false"}, doctor.OK, "15 of 15"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.drop("policy " + tc.policy)
			w.objects["manager"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args = tc.flags
			w.finds(t, "policies", tc.result, tc.words)
		})
	}
}
