package deploy_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// What an update in place writes to the pod of a workload, and what stays forbidden there.
func TestManagerUpdatesPodsOfWorkloadsWithTheRecord(t *testing.T) {
	t.Parallel()
	pods := shipped(t, "manager/*.yaml", "refit-manager-pods")
	const record = `"annotations":{"apps.kruise.io/inplace-update-state":"{}"}`
	pod := func(owner, gates string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","labels":{"app":"web","controller-revision-hash":"web-1"},"annotations":{"a":"b"},` +
			`"ownerReferences":[` + owner + `]},"spec":{` + gates + `"containers":[{"name":"app","image":"app:1","resources":{}}]},` +
			`"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"ContainersReady","status":"True"},{"type":"InPlaceUpdateReady","status":"True"}]}}`
	}
	of := func(kind string) string {
		return `{"apiVersion":"apps/v1","kind":"` + kind + `","name":"web","uid":"u","controller":true}`
	}
	const gate = `"readinessGates":[{"conditionType":"InPlaceUpdateReady"}],`
	recorded := []string{`"annotations":{"a":"b"}`, record}
	revision := []string{`"controller-revision-hash":"web-1"`, `"controller-revision-hash":"web-2"`}
	for name, tc := range map[string]struct {
		owner, gates, sub string
		edits             []string
		refused           string
	}{
		"image with the record":      {edits: append([]string{`"app:1"`, `"app:2"`}, recorded...)},
		"image without it":           {edits: []string{`"app:1"`, `"app:2"`}, refused: "together with the record"},
		"of a DaemonSet":             {owner: of("DaemonSet"), edits: append([]string{`"app:1"`, `"app:2"`}, recorded...)},
		"of a ReplicaSet":            {owner: of("ReplicaSet"), edits: append([]string{`"app:1"`, `"app:2"`}, recorded...)},
		"of a Job":                   {owner: of("Job"), edits: append([]string{`"app:1"`, `"app:2"`}, recorded...), refused: "SidecarSets have injected"},
		"of a CloneSet":              {owner: strings.Replace(of("StatefulSet"), "apps/v1", "apps.kruise.io/v1beta1", 1), edits: append([]string{`"app:1"`, `"app:2"`}, recorded...), refused: "SidecarSets"},
		"of no controller":           {owner: strings.Replace(of("StatefulSet"), "true", "false", 1), edits: append([]string{`"app:1"`, `"app:2"`}, recorded...), refused: "SidecarSets"},
		"resources":                  {edits: append([]string{`"resources":{}`, `"resources":{"limits":{"cpu":"1"}}`}, recorded...)},
		"record alone":               {edits: recorded},
		"record with a drain":        {sub: "status", gates: gate, edits: append([]string{`"InPlaceUpdateReady","status":"True"`, `"InPlaceUpdateReady","status":"False"`}, recorded...)},
		"record of no workload":      {owner: of("Job"), edits: recorded, refused: "reserved"},
		"restart time":               {edits: []string{`"a":"b"`, `"a":"b","kubectl.kubernetes.io/restartedAt":"x"`}},
		"a reserved annotation":      {edits: []string{`"a":"b"`, `"a":"b","refit.dev/nudge":"x"`}, refused: "reserved"},
		"revision":                   {edits: revision},
		"revision of a DaemonSet":    {owner: of("DaemonSet"), edits: revision},
		"revision of another":        {edits: []string{`"controller-revision-hash":"web-1"`, `"controller-revision-hash":"db-2"`}, refused: "reserved"},
		"revision of a ReplicaSet":   {owner: of("ReplicaSet"), edits: revision, refused: "reserved"},
		"revision through status":    {sub: "status", edits: revision, refused: "reserved"},
		"revision removed":           {edits: []string{`,"controller-revision-hash":"web-1"`, ""}, refused: "reserved"},
		"ready":                      {sub: "status", gates: gate, edits: []string{`"Ready","status":"False"`, `"Ready","status":"True"`}},
		"ready, gate closed":         {sub: "status", gates: gate, edits: []string{`"Ready","status":"False"`, `"Ready","status":"True"`, `"InPlaceUpdateReady","status":"True"`, `"InPlaceUpdateReady","status":"False"`}, refused: "Ready to False only"},
		"ready, container not ready": {sub: "status", edits: []string{`"Ready","status":"False"`, `"Ready","status":"True"`, `"ContainersReady","status":"True"`, `"ContainersReady","status":"False"`}, refused: "conditions of kubelet"},
		"ready, of no workload":      {sub: "status", owner: of("Job"), edits: []string{`"Ready","status":"False"`, `"Ready","status":"True"`}, refused: "Ready to False only"},
		"another owner":              {edits: []string{`"uid":"u"`, `"uid":"v"`}, refused: "nothing of a pod's status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.owner == "" {
				tc.owner = of("StatefulSet")
			}
			before := pod(tc.owner, tc.gates)
			after := strings.NewReplacer(tc.edits...).Replace(before)
			if after == before {
				t.Fatal("nothing is changed")
			}
			_, refused := pods.evaluate(t, review{user: account, operation: admission.Update, subresource: tc.sub, oldObject: before, object: after})
			if (tc.refused == "") != (refused == "") || !strings.Contains(refused, tc.refused) {
				t.Errorf("refused: %q, want %q", refused, tc.refused)
			}
		})
	}
}
