package e2e_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRestartsOfAllProgramsAreFound has a daemon that was restarted, a sidecar whose pod was replaced by one of the same name, and a manager that
// is gone.
func TestRestartsOfAllProgramsAreFound(t *testing.T) {
	t.Parallel()
	before := map[string]program{
		"refit-system/daemon-1/daemon": {pod: "1", restarts: 2}, "refit-system/manager-1/manager": {pod: "2"}, "own/web/refit-sidecar": {pod: "3"},
		"refit-system/daemon-2/daemon": {pod: "4", restarts: 1},
	}
	if got := interrupted(before, before); len(got) > 0 {
		t.Errorf("nothing has ended: %q", got)
	}
	after := maps.Clone(before)
	after["refit-system/daemon-1/daemon"] = program{pod: "1", restarts: 5}
	after["own/web/refit-sidecar"] = program{pod: "5"}
	delete(after, "refit-system/manager-1/manager")
	want := []string{"own/web/refit-sidecar: its pod is gone", "refit-system/daemon-1/daemon: restarted 3 times", "refit-system/manager-1/manager: its pod is gone"}
	if got := interrupted(before, after); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestMemoryIsComparedWithTheLimit has an answer as kubelet gives it, with a container of which nothing was measured yet.
func TestMemoryIsComparedWithTheLimit(t *testing.T) {
	t.Parallel()
	used, err := workingSets(`{"node": {"nodeName": "node-1", "memory": {"workingSetBytes": 5000000000}}, "pods": [
		{"podRef": {"name": "manager-1", "namespace": "refit-system", "uid": "2"}, "memory": {"workingSetBytes": 62000000},
		 "containers": [{"name": "manager", "cpu": {"usageNanoCores": 1}, "memory": {"time": "2026-11-28T10:00:00Z", "usageBytes": 70000000, "workingSetBytes": 60817408}}]},
		{"podRef": {"name": "daemon-1", "namespace": "refit-system"}, "containers": [{"name": "daemon", "memory": {"workingSetBytes": 134217728}}]},
		{"podRef": {"name": "web", "namespace": "own"}, "containers": [{"name": "refit-sidecar"}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	lines, faults := judgeMemory(map[string]program{
		"refit-system/manager-1/manager": {limit: 256 << 20}, "refit-system/daemon-1/daemon": {limit: 128 << 20}, "own/web/refit-sidecar": {limit: 64 << 20},
	}, used)
	if want := []string{"refit-system/manager-1/manager: memory 58Mi of 256Mi"}; !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
	want := []string{"own/web/refit-sidecar: kubelet knows no memory", "refit-system/daemon-1/daemon: memory 128Mi of 128Mi"}
	if !slices.Equal(faults, want) {
		t.Errorf("faults %q, want %q", faults, want)
	}
	if _, err := workingSets("<html>"); err == nil {
		t.Error("what is no JSON was read")
	}
}

// TestChangesOfTheOtherTenantAreFound changes one thing of each kind of object, and what the canaries change.
func TestChangesOfTheOtherTenantAreFound(t *testing.T) {
	t.Parallel()
	pod := func(name string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","uid":"u","resourceVersion":"1","labels":{"app":"web"},"annotations":{"refit.dev/a":"b","a.b/c":"d"}},"spec":{"x":1},"status":{"phase":"Running"}}`
	}
	deployment := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","resourceVersion":"1"},"spec":{"replicas":1},"status":{"replicas":0}}`
	config := func(name string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","resourceVersion":"1"}}`
	}
	for name, tt := range map[string]struct {
		object, from, to string
		found            bool
	}{
		"label":                     {pod("victim"), `"app":"web"`, `"app":"evil"`, true},
		"annotation":                {pod("victim"), `"refit.dev/a":"b"`, `"refit.dev/a":"c"`, true},
		"spec":                      {pod("request-1"), `"x":1`, `"x":2`, true},
		"owner":                     {pod("update-1"), `"uid":"u"`, `"uid":"v","ownerReferences":[{"kind":"Evil","apiVersion":"a/v1","name":"e","uid":"e"}]`, true},
		"finalizer":                 {pod("request-1"), `"uid":"u"`, `"uid":"u","finalizers":["a.b/c"]`, true},
		"replaced":                  {pod("probe"), `"uid":"u"`, `"uid":"v"`, true},
		"annotation of others":      {pod("update-1"), `"a.b/c":"d"`, `"a.b/c":"e"`, true},
		"template":                  {deployment, `"replicas":1`, `"replicas":2`, true},
		"ConfigMap":                 {config("bystander"), `"resourceVersion":"1"`, `"resourceVersion":"2"`, true},
		"status of a pod":           {pod("victim"), `"Running"`, `"Failed"`, false},
		"status of a workload":      {deployment, `"replicas":0`, `"replicas":1`, false},
		"report of the daemon":      {strings.Replace(pod("victim"), `,"annotations":{"refit.dev/a":"b","a.b/c":"d"}`, "", 1), `"uid":"u"`, `"uid":"u","annotations":{"apps.kruise.io/runtime-containers-meta":"x"}`, false},
		"record of an update":       {pod("update-1"), `"refit.dev/a":"b"`, `"refit.dev/a":"c"`, false},
		"replaced by its canary":    {pod("update-1"), `"uid":"u"`, `"uid":"v"`, false},
		"result of a sidecar":       {config(records), `"resourceVersion":"1"`, `"resourceVersion":"2"`, false},
		"label by the own sidecar":  {strings.Replace(pod("web"), `"app":"web"`, `"app":"web","refit.dev/sidecar":"true"`, 1), `"app":"web"`, `"app":"web","gameserver-idle":"true"`, false},
		"update of the own sidecar": {strings.Replace(pod("web"), `"app":"web"`, `"app":"web","refit.dev/sidecar":"true"`, 1), `"x":1`, `"x":2`, true},
	} {
		facts := func(text string) map[string]string {
			object := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			encoded, err := json.Marshal(factsOf(object))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return map[string]string{object.GetKind() + " " + object.GetName(): string(encoded)}
		}
		if !strings.Contains(tt.object, tt.from) {
			t.Fatalf("%s: no %s", name, tt.from)
		}
		if got := changed(facts(tt.object), facts(strings.Replace(tt.object, tt.from, tt.to, 1))); (len(got) > 0) != tt.found {
			t.Errorf("%s: found %q, want a change: %t", name, got, tt.found)
		}
	}
	one := map[string]string{"Secret a": "1", "Pod update-0": "2"}
	if got := changed(one, map[string]string{"RestartRollout b": "1"}); len(got) != 2 {
		t.Errorf("one object is gone, and another one new: %q", got)
	}
}
