package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/refit-project/refit/test/kit/cgroups"
)

// usage is what one process takes and its container is charged, in bytes.
type usage struct {
	// Anonymous is RssAnon of the process.
	Anonymous uint64 `json:"rssAnonBytes"`
	// WorkingSet of the container's cgroup, as kubelet computes it: all but the file cache that is easily dropped.
	WorkingSet uint64 `json:"workingSetBytes"`
}

func read(pid int) (usage, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return usage{}, err
	}
	group, err := cgroups.Of(pid, "memory")
	if err != nil {
		return usage{}, err
	}
	set, err := workingSet(group.Folder(), group.V2)
	return usage{Anonymous: status.RssAnon, WorkingSet: set}, err
}

func workingSet(folder string, v2 bool) (uint64, error) {
	current, inactive := "memory.usage_in_bytes", "total_inactive_file"
	if v2 {
		current, inactive = "memory.current", "inactive_file"
	}
	text, err := os.ReadFile(filepath.Join(folder, current))
	if err != nil {
		return 0, err
	}
	used, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", current, err)
	}
	stat, err := os.ReadFile(filepath.Join(folder, "memory.stat"))
	if err != nil {
		return 0, err
	}
	return lessInactive(used, string(stat), inactive)
}

// lessInactive subtracts a line of memory.stat.
func lessInactive(used uint64, stat, name string) (uint64, error) {
	for line := range strings.Lines(stat) {
		text, ok := strings.CutPrefix(line, name+" ")
		if !ok {
			continue
		}
		inactive, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory.stat: %s: %w", name, err)
		}
		return used - min(used, inactive), nil
	}
	return 0, fmt.Errorf("memory.stat has no %s", name)
}
