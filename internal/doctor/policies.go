package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// wantedPolicies returns the names of the ValidatingAdmissionPolicies that the installation needs: of what the programs may write, and of what
// users may.
func (e *examiner) wantedPolicies() (ofPrograms, ofUsers []string) {
	if e.daemonSet != nil {
		ofPrograms = append(ofPrograms, "refit-daemon-requests", "refit-daemon-pods", "refit-daemon-probes", "refit-daemon-images", "refit-daemon-events")
		ofUsers = append(ofUsers, "refit-daemon-record")
	}
	if e.deployment == nil {
		return ofPrograms, ofUsers
	}
	ofPrograms = append(ofPrograms, "refit-manager-pods", "refit-manager-requests", "refit-manager-rollouts")
	if !e.off("pod-probes") {
		ofUsers = append(ofUsers, "refit-podprobemarker")
	}
	if !e.off("sidecar-sets") {
		ofPrograms, ofUsers = append(ofPrograms, "refit-manager-revisions"), append(ofUsers, "refit-sidecarset-required")
	}
	if !e.off("in-place-updates") {
		ofPrograms, ofUsers = append(ofPrograms, "refit-manager-workloads", "refit-manager-undo", "refit-manager-replicasets"), append(ofUsers, "refit-inplaceupdatepolicy")
	}
	return ofPrograms, ofUsers
}

// policies checks that the policies that restrict writes of the programs and of users are in force.
func (e *examiner) policies(ctx context.Context) []Finding {
	var list admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := e.API.List(ctx, &list); err != nil {
		return unread("ValidatingAdmissionPolicies", err)
	}
	var bindings admissionregistrationv1.ValidatingAdmissionPolicyBindingList
	if err := e.API.List(ctx, &bindings); err != nil {
		return unread("ValidatingAdmissionPolicyBindings", err)
	}
	ofPrograms, ofUsers := e.wantedPolicies()
	wanted := slices.Concat(ofPrograms, ofUsers)
	inForce := func(name string) bool { return bound(list.Items, bindings.Items, name) }
	missing, unchecked := slices.DeleteFunc(ofPrograms, inForce), slices.DeleteFunc(ofUsers, inForce)
	var findings []Finding
	if len(missing) > 0 {
		findings = append(findings, one(Warning, "not in force: %s: the programs may write more than they need to", strings.Join(missing, ", "))...)
	}
	if len(unchecked) > 0 {
		findings = append(findings, one(Warning, "not in force: %s: what they refuse is admitted, from any user", strings.Join(unchecked, ", "))...)
	}
	switch faulty := warnings(list.Items, wanted); {
	case len(wanted) == 0 && e.lookErr != nil:
		return e.unseen()
	case len(wanted) == 0:
		return one(Skipped, "there is no program for them")
	case len(findings) > 0:
		return findings
	case len(faulty) > 0:
		return one(Warning, "the API server warns of expressions of %s", strings.Join(faulty, ", "))
	}
	return one(OK, "%d of %d are bound", len(wanted), len(wanted))
}

// bound reports whether there is a policy of a name, and a binding by which it refuses.
func bound(policies []admissionregistrationv1.ValidatingAdmissionPolicy, bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding, name string) bool {
	return slices.ContainsFunc(policies, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == name }) &&
		slices.ContainsFunc(bindings, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == name && slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny)
		})
}

// warnings returns the first warning of the API server about each of the wanted policies that has one.
func warnings(policies []admissionregistrationv1.ValidatingAdmissionPolicy, wanted []string) []string {
	var faulty []string
	for i := range policies {
		p := &policies[i]
		if checking := p.Status.TypeChecking; slices.Contains(wanted, p.Name) && checking != nil && len(checking.ExpressionWarnings) > 0 {
			faulty = append(faulty, fmt.Sprintf("%s (%s: %s)", p.Name, checking.ExpressionWarnings[0].FieldRef, checking.ExpressionWarnings[0].Warning))
		}
	}
	return faulty
}
