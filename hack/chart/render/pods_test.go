package render_test

import (
	"testing"
)

// A cluster where pods of refit-manager need an ID of the platform, a toleration or a label of nodes needs them for the other pods of its image too.
func TestPodsOfTheManagersImageRunWhereTheManagerRuns(t *testing.T) {
	t.Parallel()
	expect := map[string]string{}
	for _, pod := range []string{"CronJob/refit-certificates {.spec.jobTemplate.spec.template.spec", "Pod/refit-test {.spec"} {
		expect[pod+".securityContext}"] = `{"fsGroup":7,"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}`
		expect[pod+".tolerations[*].key}"] = "dedicated"
		expect[pod+".nodeSelector}"] = `{"pool":"system"}`
	}
	expects(t, "manager: {podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: 7}, tolerations: [{key: dedicated, operator: Exists}], nodeSelector: {pool: system}}", expect)
}

// A webhook that does not answer refuses requests, or has pods created without sidecars. kube-proxy is informed of a deletion a moment later.
func TestAManagerThatIsDeletedAnswersUntilNothingIsSentToIt(t *testing.T) {
	t.Parallel()
	expects(t, "", map[string]string{
		manager + ".containers[0].lifecycle.preStop.sleep.seconds} {.spec.template.spec.terminationGracePeriodSeconds}": "5 30",
	})
}
