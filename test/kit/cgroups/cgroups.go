// Package cgroups finds the cgroups of processes, of version 1 or 2.
package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Group is the cgroup of a process in the hierarchy of a controller.
type Group struct {
	// Path is below the root of the hierarchy.
	Path string
	// V2 is set for the unified hierarchy, which may lack the controller.
	V2 bool

	controller string
}

// Of finds the cgroup of a process. Version 1 is preferred: a controller is in one of the two.
func Of(pid int, controller string) (Group, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return Group{}, fmt.Errorf("find cgroup: %w", err)
	}
	return Parse(string(text), controller)
}

// Parse is Of with the text of /proc/PID/cgroup.
func Parse(text, controller string) (Group, error) {
	found := Group{controller: controller}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case strings.Contains(","+parts[1]+",", ","+controller+","):
			found.Path, found.V2 = parts[2], false
			return found, nil
		case parts[0] == "0" && parts[1] == "":
			found.Path, found.V2 = parts[2], true
		}
	}
	if found.Path == "" {
		return Group{}, fmt.Errorf("find cgroup: no hierarchy has the controller %s", controller)
	}
	return found, nil
}

// Top is the topmost cgroup above the group, which may be the root.
func (g Group) Top() Group {
	first, _, _ := strings.Cut(strings.TrimPrefix(g.Path, "/"), "/")
	g.Path = "/" + first
	return g
}

// Folder has the files of the group.
func (g Group) Folder() string {
	if g.V2 {
		return filepath.Join("/sys/fs/cgroup", g.Path)
	}
	return filepath.Join("/sys/fs/cgroup", g.controller, g.Path)
}
