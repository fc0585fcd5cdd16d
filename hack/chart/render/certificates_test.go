package render_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Who takes the token of the Job can change the configurations of Refit's webhooks, and reaches no other configuration and no other Secret.
func TestTokenOfTheCertificatesJobReachesOnlyItsSecretsAndWebhooks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ values, webhooks string }{
		"by default, from 1.36 on":  {"policies: {hold: policy}", "refit-manager refit-manager-sidecarsets"},
		"without SidecarSets":       {"{policies: {hold: policy}, manager: {features: {sidecarSets: false}}}", "refit-manager"},
		"with a webhook that holds": {"policies: {hold: webhook}", "refit-manager refit-manager-sidecarsets refit-manager-workloads"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := rendered(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{
				"ClusterRole/refit-certificates: get update mutatingwebhookconfigurations of admissionregistration.k8s.io " + tc.webhooks,
				"Role/refit-certificates: get update secrets of core refit-manager-webhook-ca refit-manager-webhook-cert",
			}
			if got := found.rightsOf(t, "refit-certificates"); !slices.Equal(got, want) {
				t.Errorf("%q\nwant %q", got, want)
			}
		})
	}
}

// rightsOf returns the rules of the roles that are bound to an account of the release's namespace. A binding to a role that is not rendered, or in another
// namespace, is an error.
func (o objects) rightsOf(t *testing.T, account string) (rights []string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !strings.Contains(key, "RoleBinding/") || !o.binds(key, account) {
			continue
		}
		role := o.at(t, key+" {.roleRef.kind}/{.roleRef.name}")
		if strings.HasPrefix(key, "RoleBinding/") != strings.HasPrefix(role, "Role/") || o[role] == nil {
			t.Errorf("%s binds %s", key, role)
			continue
		}
		rules, _ := o[role]["rules"].([]any)
		for _, rule := range rules {
			fields := rule.(map[string]any)
			group := strings.Join(texts(fields["apiGroups"]), " ")
			if group == "" {
				group = "core"
			}
			names, _ := fields["resourceNames"].([]any)
			rights = append(rights, fmt.Sprintf("%s: %s %s of %s %s", role, strings.Join(texts(fields["verbs"]), " "), strings.Join(texts(fields["resources"]), " "), group, strings.Join(texts(names), " ")))
		}
	}
	return rights
}

// binds reports whether a binding names the account.
func (o objects) binds(key, account string) bool {
	subjects, _ := o[key]["subjects"].([]any)
	return slices.ContainsFunc(subjects, func(subject any) bool {
		fields := subject.(map[string]any)
		return fields["kind"] == "ServiceAccount" && fields["name"] == account && fields["namespace"] == namespace
	})
}
