package main

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// ruleOfRecords is a validation of the policy for the ConfigMap with the records of all workloads.
func ruleOfRecords(t *testing.T, rule int) cel.Program {
	t.Helper()
	policy := documents[admissionregistrationv1.ValidatingAdmissionPolicy](t, "ValidatingAdmissionPolicy")["20-policy.yaml refit-sidecar-records"]
	if len(policy.Spec.Validations) != 2 {
		t.Fatalf("%d validations", len(policy.Spec.Validations))
	}
	env, err := cel.NewEnv(cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType),
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(policy.Spec.Validations[rule].Expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// An attacker who controls a sidecar must not get the records of other workloads deleted, by an owner that does not exist, nor
// keep their pods from recording.
func TestPolicyLeavesTheRestOfTheRecordsAlone(t *testing.T) {
	t.Parallel()
	program := ruleOfRecords(t, 1)
	with := func(change func(object, metadata map[string]any)) map[string]any {
		metadata := map[string]any{"name": "sidecar-result", "labels": map[string]any{"a": "b"}}
		object := map[string]any{"metadata": metadata, "data": map[string]any{"Pod.a": "{}"}}
		change(object, metadata)
		return object
	}
	owners := []any{map[string]any{"kind": "Pod", "uid": "none"}}
	for name, tt := range map[string]struct {
		change          func(object, metadata map[string]any)
		created, update bool // allowed
	}{
		"data":        {func(o, _ map[string]any) { o["data"] = map[string]any{"Pod.a": "2"} }, true, true},
		"owner":       {func(_, m map[string]any) { m["ownerReferences"] = owners }, false, false},
		"finalizer":   {func(_, m map[string]any) { m["finalizers"] = []any{"a.b/c"} }, false, false},
		"immutable":   {func(o, _ map[string]any) { o["immutable"] = true }, false, false},
		"labels":      {func(_, m map[string]any) { delete(m, "labels") }, true, false},
		"annotations": {func(_, m map[string]any) { m["annotations"] = map[string]any{"a": "b"} }, true, false},
		"binary data": {func(o, _ map[string]any) { o["binaryData"] = map[string]any{"a": "YQ=="} }, true, false},
	} {
		for operation, want := range map[string]bool{"CREATE": tt.created, "UPDATE": tt.update} {
			out, _, err := program.Eval(map[string]any{
				"request": map[string]any{"operation": operation}, "variables": map[string]any{},
				"object": with(tt.change), "oldObject": with(func(map[string]any, map[string]any) {}),
			})
			if err != nil || out.Value() != want {
				t.Errorf("%s, %s: %v %v, want %v", operation, name, out, err, want)
			}
		}
	}
}

// A sidecar records what its own workload has accepted, and the whole name of the workload counts.
func TestPolicyComparesWholeNamesOfWorkloads(t *testing.T) {
	t.Parallel()
	program := ruleOfRecords(t, 0)
	const long = "a-deployment-with-a-name-that-is-longer-than-generated-names"
	for name, tt := range map[string]struct {
		pod, key string
		want     bool
	}{
		"Deployment":                      {"game-lobby-7d9f8c6b5d-x7k2q", "Deployment.game-lobby", true},
		"name begins with another's":      {"game-lobby-7d9f8c6b5d-x7k2q", "Deployment.game", false},
		"name ends in another's":          {"game-7d9f8c6b5d-x7k2q", "Deployment.game-lobby", false},
		"DaemonSet, like a Deployment":    {"game-db-x7k2q", "Deployment.game", false},
		"its ReplicaSet":                  {"game-7d9f8c6b5d-x7k2q", "ReplicaSet.game-7d9f8c6b5d", true},
		"ReplicaSet of another":           {"game-lobby-7d9f8c6b5d-x7k2q", "ReplicaSet.game", false},
		"StatefulSet":                     {"game-12", "StatefulSet.game", true},
		"StatefulSet of another":          {"game-lobby-0", "StatefulSet.game", false},
		"StatefulSet that ends in digits": {"game-1-0", "StatefulSet.game", false},
		"GameServerSet":                   {"game-0", "GameServerSet.game", true},
		"CloneSet":                        {"game-x7k2q", "CloneSet.game", true},
		"name with dots":                  {"game.eu-0", "StatefulSet.game.eu", true},
		"dots are no wildcards":           {"gamexeu-0", "StatefulSet.game.eu", false},
		"indexed Job":                     {"load-3-x7k2q", "Job.load", true},
		"pod of its own":                  {"web", "Pod.web", true},
		"pod of another":                  {"web-2", "Pod.web", false},
		"name that was cut":               {long[:58] + "x7k2q", "Deployment." + long, true},
		"cut inside of the hash":          {"a-deployment-with-a-name-that-is-nearly-as-long-as-pos-" + "7d9" + "x7k2q", "Deployment.a-deployment-with-a-name-that-is-nearly-as-long-as-pos", true},
		"cut, but of another":             {long[:58] + "x7k2q", "Deployment.a-deployment", false},
		"DaemonSet of the same name":      {"game-0", "DaemonSet.game", false},
		"StatefulSet of the same name":    {"game-x7k2q", "StatefulSet.game", false},
		"DaemonSet":                       {"game-x7k2q", "DaemonSet.game", true},
		"no kind":                         {"game-0", "game", false},
		"nothing":                         {"game-0", "", false},
	} {
		out, _, err := program.Eval(map[string]any{
			"request":   map[string]any{"operation": "UPDATE"},
			"variables": map[string]any{"pod": tt.pod, "before": map[string]string{"Deployment.x": "1"}, "after": map[string]string{"Deployment.x": "1", tt.key: "2"}},
		})
		if err != nil || out.Value() != tt.want {
			t.Errorf("%s: pod %s, key %s: %v %v, want %v", name, tt.pod, tt.key, out, err, tt.want)
		}
	}
	for name, after := range map[string]map[string]string{"removed": {}, "changed": {"Deployment.x": "2"}} {
		out, _, err := program.Eval(map[string]any{
			"request":   map[string]any{"operation": "UPDATE"},
			"variables": map[string]any{"pod": "game-0", "before": map[string]string{"Deployment.x": "1"}, "after": after},
		})
		if err != nil || out.Value() != false {
			t.Errorf("key of another workload %s: %v %v", name, out, err)
		}
	}
}
