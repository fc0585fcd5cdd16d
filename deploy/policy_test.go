// Package deploy_test evaluates the shipped admission policies as the API server does.
package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
)

const account = "system:serviceaccount:elsewhere:renamed" // whoever is bound, not a name in the policy

func TestManagerMayWriteOfPodsOnlyWhatDrainsAndProbesNeed(t *testing.T) {
	t.Parallel()
	pods := shipped(t, "manager/*.yaml", "refit-manager-pods")
	pod := func(metadata, status string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"` + metadata + `},"spec":{},"status":{"phase":"Running","podIP":"10.0.0.1"` + status + `}}`
	}
	const ready = `,"conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"}]`
	before := pod(`,"labels":{"app":"web","pod-template-hash":"a"}`, ready)
	with := func(from, to string) string { return strings.Replace(before, from, to, 1) }
	for name, tc := range map[string]struct {
		review review
		want   string // part of the refusal; empty: allowed
	}{
		"nothing":                   {review: review{object: before}},
		"a label":                   {review: review{object: with(`"app":"web"`, `"app":"web","example.com/idle":"yes"`)}},
		"an annotation":             {review: review{object: with(`"name":"web"`, `"name":"web","annotations":{"controller.kubernetes.io/pod-deletion-cost":"1","kruise.io/podprobe":"[]"}`)}},
		"volumes to be updated":     {review: review{object: with(`"name":"web"`, `"name":"web","annotations":{"refit.dev/config-refresh":"web-1"}`)}},
		"an overridden result":      {review: review{object: with(`"name":"web"`, `"name":"web","annotations":{"refit.dev/podprobe-overridden":"{}"}`)}},
		"a condition":               {review: review{object: with(`"conditions":[`, `"conditions":[{"type":"example.com/idle","status":"True"},`)}},
		"a drain":                   {review: review{object: with(`"Ready","status":"True"}`, `"Ready","status":"False","reason":"ReadinessGatesNotReady"},{"type":"KruisePodReady","status":"False"}`)}},
		"a gate that is opened":     {review: review{object: with(`"Ready","status":"True"}`, `"Ready","status":"True"},{"type":"InPlaceUpdateReady","status":"True"}`)}},
		"a gate that is closed":     {review: review{object: with(`"Ready","status":"True"}`, `"Ready","status":"True"},{"type":"InPlaceUpdateReady","status":"False"}`)}, want: "InPlaceUpdateReady to True only"},
		"another user":              {review: review{user: "alice", object: with("10.0.0.1", "10.9.9.9")}},
		"address":                   {review: review{object: with("10.0.0.1", "10.9.9.9")}, want: "nothing of a pod's status but conditions"},
		"phase":                     {review: review{object: with("Running", "Failed")}, want: "nothing of a pod's status but conditions"},
		"container statuses":        {review: review{object: pod(`,"labels":{"app":"web","pod-template-hash":"a"}`, ready+`,"containerStatuses":[{"name":"app"}]`)}, want: "nothing of a pod's status but conditions"},
		"resource claims":           {review: review{object: pod(`,"labels":{"app":"web","pod-template-hash":"a"}`, ready+`,"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"others"}]`)}, want: "nothing of a pod's status but conditions"},
		"a field of the future":     {review: review{object: pod(`,"labels":{"app":"web","pod-template-hash":"a"}`, ready+`,"newField":1`)}, want: "nothing of a pod's status but conditions"},
		"address removed":           {review: review{object: with(`,"podIP":"10.0.0.1"`, "")}, want: "nothing of a pod's status but conditions"},
		"finalizers":                {review: review{object: with(`"name":"web"`, `"name":"web","finalizers":["a.b/c"]`)}, want: "nothing of a pod's status"},
		"not ready, and ready":      {review: review{object: with(`{"type":"Ready","status":"True"}`, `{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}`)}, want: "Ready to False only"},
		"ready without being so":    {review: review{object: before, oldObject: with(`"Ready","status":"True"`, `"Ready","status":"False"`)}, want: "Ready to False only"},
		"a condition of kubelet":    {review: review{object: with(`"Initialized","status":"True"`, `"Initialized","status":"False"`)}, want: "conditions of kubelet"},
		"a reserved label":          {review: review{object: with(`"app":"web"`, `"app":"web","topology.kubernetes.io/zone":"x"`)}, want: "reserved"},
		"a reserved label changed":  {review: review{object: with(`"pod-template-hash":"a"`, `"pod-template-hash":"b"`)}, want: "reserved"},
		"a reserved label removed":  {review: review{object: with(`,"pod-template-hash":"a"`, ``)}, want: "reserved"},
		"an annotation of a daemon": {review: review{object: with(`"name":"web"`, `"name":"web","annotations":{"refit.dev/nudge":"x"}`)}, want: "reserved"},
		"another subresource":       {review: review{object: before, subresource: "exec"}, want: "may only update pods"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.review
			r.operation = admission.Update
			if r.user == "" {
				r.user = account
			}
			if r.oldObject == "" {
				r.oldObject = before
			}
			switch r.subresource {
			case "":
				r.subresource = "status"
			case "none":
				r.subresource = ""
			}
			if _, refused := pods.evaluate(t, r); (tc.want == "") != (refused == "") || !strings.Contains(refused, tc.want) {
				t.Errorf("refused: %q, want %q", refused, tc.want)
			}
		})
	}
}

// Whoever takes Refit's rights away by removing the subjects of its binding must not stop the writes of everybody else: an error
// of a match condition refuses the request.
func TestABindingWithoutSubjectsRefusesNobody(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"manager/*.yaml", "daemonset/*.yaml"} {
		for _, p := range documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, pattern, "ValidatingAdmissionPolicy") {
			if p.Spec.ParamKind == nil || p.Spec.ParamKind.Kind != "ClusterRoleBinding" {
				continue
			}
			conditions := policy{name: p.Name, conditions: p.Spec.MatchConditions, params: true}
			matches, _ := conditions.evaluate(t, review{
				user: account, operation: admission.Update, object: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`,
				params: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"}}`,
			})
			if matches {
				t.Errorf("%s applies to an account that is not bound", p.Name)
			}
		}
	}
}

// No condition, variable, rule or message names the namespace of an installation. A selector of namespaces has to, and the
// chart writes the namespace there.
func TestPoliciesFollowTheirBinding(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"manager/*.yaml", "daemonset/*.yaml", "sidecar/*.yaml"} {
		policies := documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, pattern, "ValidatingAdmissionPolicy")
		if len(policies) == 0 {
			t.Errorf("no policies in %s", pattern)
		}
		for _, p := range policies {
			p.Spec.MatchConstraints = nil
			text, err := json.Marshal(p.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if before, _, found := strings.Cut(string(text), "refit-system"); found {
				t.Errorf("%s names a namespace after ...%s", p.Name, before[max(0, len(before)-120):])
			}
		}
		for _, b := range documents[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, pattern, "ValidatingAdmissionPolicyBinding") {
			if b.Spec.ParamRef != nil && *b.Spec.ParamRef.ParameterNotFoundAction != admissionregistrationv1.AllowAction {
				t.Errorf("%s: without its parameter it would refuse everybody's writes", b.Name)
			}
		}
	}
}
