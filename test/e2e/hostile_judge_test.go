package e2e_test

import (
	"maps"
	"slices"
	"testing"
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
