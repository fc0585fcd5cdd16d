package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Who has the role restarts containers, and changes nothing else. It reaches a user by a binding only.
func TestARestarterRestartsAndDeletesNothing(t *testing.T) {
	t.Parallel()
	found, err := rendered(t, "")
	if err != nil {
		t.Fatal(err)
	}
	const role = "ClusterRole/refit-restarter"
	if got := found.at(t, role+" {.aggregationRule}{.metadata.labels}"); strings.Contains(got, "aggregate") {
		t.Errorf("the role is added to others: %s", got)
	}
	want := map[string]string{
		"apps.kruise.io/containerrecreaterequests": "create", "refit.dev/restartrollouts": "create delete deletecollection patch update", "refit.dev/restartschedules": "create delete deletecollection patch update",
		"/pods": "", "/events": "", "apps/deployments": "", "apps/replicasets": "", "apps/statefulsets": "", "apps/daemonsets": "", "policy/poddisruptionbudgets": "",
		"apps.kruise.io/clonesets": "", "apps.kruise.io/statefulsets": "", "apps.kruise.io/daemonsets": "", "apps.kruise.io/imagepulljobs": "", "refit.dev/inplaceupdatepolicies": "",
	}
	rules, _ := found[role]["rules"].([]any)
	for _, rule := range rules {
		fields := rule.(map[string]any)
		writes, reads := "", 0
		verbs := texts(fields["verbs"])
		slices.Sort(verbs)
		for _, verb := range verbs {
			if slices.Contains([]string{"get", "list", "watch"}, verb) {
				reads++
			} else {
				writes = strings.TrimSpace(writes + " " + verb)
			}
		}
		for _, resource := range texts(fields["resources"]) {
			name := texts(fields["apiGroups"])[0] + "/" + resource
			if expected, known := want[name]; !known || writes != expected || reads != 3 {
				t.Errorf("%s: writes %q and reads by %d verbs, want %q and 3 (in the table: %t)", name, writes, reads, expected, known)
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("the role has nothing for %v", want)
	}
}

// Without a feature the role has no right to make its objects.
func TestRightsOfARestarterFollowTheFeatures(t *testing.T) {
	t.Parallel()
	const requests = `ClusterRole/refit-restarter {.rules[?(@.resources[0]=="containerrecreaterequests")].verbs}`
	const rollouts = `ClusterRole/refit-restarter {.rules[?(@.resources[0]=="restartrollouts")].verbs}`
	expects(t, "manager: {features: {containerRecreateRequests: false}}", map[string]string{requests: `["get","list","watch"]`})
	expects(t, "manager: {features: {restartRollouts: false}}", map[string]string{requests: `["get","list","watch","create"]`, rollouts: ""})
	expects(t, "manager: {features: {containerRecreateRequests: false, restartRollouts: false}}", map[string]string{requests: "no ClusterRole/refit-restarter"})
}

func texts(list any) []string {
	var all []string
	for _, one := range list.([]any) {
		all = append(all, fmt.Sprint(one))
	}
	return all
}
