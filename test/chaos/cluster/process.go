package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/refit-project/refit/test/kit/cgroups"
)

// Process finds a process by its cgroup, which names the UID of a pod or the ID of a container, and its name.
func Process(id, name string) (int, error) {
	if id == "" {
		return 0, errors.New("find process: no ID")
	}
	entries, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		cgroups, err := os.ReadFile(entry)
		// With the systemd driver a UID has underscores.
		if err != nil || !strings.Contains(strings.ReplaceAll(string(cgroups), "_", "-"), id) {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(filepath.Dir(entry), "comm"))
		if err != nil || strings.TrimSpace(string(comm)) != name {
			continue
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(entry)))
	}
	return 0, fmt.Errorf("no process %s of %s", name, id)
}

// Cgroup is the folder in which the limits of a process are that a controller keeps, of cgroup version 1 or 2.
func Cgroup(pid int, controller string) (string, error) {
	group, err := cgroups.Of(pid, controller)
	if err != nil {
		return "", err
	}
	// The hierarchy of version 2 may be there without a controller.
	if found, err := filepath.Glob(filepath.Join(group.Folder(), controller+".*")); err != nil || len(found) == 0 {
		return "", fmt.Errorf("process %d has no cgroup of controller %s", pid, controller)
	}
	return group.Folder(), nil
}
