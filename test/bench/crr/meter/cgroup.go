package meter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuOf gives the file with the CPU time of the whole cluster, from the cgroups of one of its processes: the cluster
// is in one cgroup, whose name is the first part of all paths.
func cpuOf(cgroups string) (file string, err error) {
	for line := range strings.Lines(cgroups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		top, _, _ := strings.Cut(strings.TrimPrefix(parts[2], "/"), "/")
		switch {
		case top == "":
		case strings.Contains(","+parts[1]+",", ",cpuacct,"):
			return filepath.Join("/sys/fs/cgroup/cpuacct", top, "cpuacct.usage"), nil
		case parts[0] == "0" && parts[1] == "":
			file = filepath.Join("/sys/fs/cgroup", top, "cpu.stat")
		}
	}
	if file == "" {
		return "", errors.New("find the cluster's cgroup: none accounts for CPU time")
	}
	return file, nil
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
