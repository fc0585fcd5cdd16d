package meter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/refit-project/refit/test/kit/cgroups"
)

// cpuOf gives the file with the CPU time of the whole cluster, of which the process is one: the cluster is in one cgroup, whose name
// is the first part of all paths.
func cpuOf(pid int) (file string, err error) {
	group, err := cgroups.Of(pid, "cpuacct")
	if err != nil {
		return "", fmt.Errorf("find the cluster's cgroup: %w", err)
	}
	if group = group.Top(); group.Path == "/" {
		return "", errors.New("find the cluster's cgroup: the process is in the root")
	}
	if group.V2 {
		return filepath.Join(group.Folder(), "cpu.stat"), nil
	}
	return filepath.Join(group.Folder(), "cpuacct.usage"), nil
}

// readCPU reads cpuacct.usage, nanoseconds, or cpu.stat, whose first line is in microseconds (cgroup-v2.rst).
func readCPU(file string) (time.Duration, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read the cluster's CPU time: %w", err)
	}
	return parseCPU(string(content))
}

func parseCPU(content string) (time.Duration, error) {
	line, _, _ := strings.Cut(content, "\n")
	unit := time.Nanosecond
	if text, ok := strings.CutPrefix(line, "usage_usec "); ok {
		line, unit = text, time.Microsecond
	}
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the cluster's CPU time: %w", err)
	}
	return time.Duration(n) * unit, nil
}
