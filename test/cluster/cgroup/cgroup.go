// Package cgroup makes, fills, empties and removes the cgroups of a cluster, on cgroup v1 (one tree per
// controller) and v2 (one tree). A cgroup is also how every process of a cluster is found again, shims and
// containers included, after the program that started them is gone.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tree is the set of cgroup hierarchies mounted on this machine.
type Tree struct {
	// Unified says that the controllers are controllers of cgroup v2.
	Unified bool
	// mounts are the mount points of all hierarchies; the first one tracks processes.
	mounts []string
	// cpu is the mount point of the hierarchy that shares out the processors; empty for the unified one.
	cpu string
}

// Detect finds the hierarchies in /proc/self/mountinfo.
func Detect() (Tree, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Tree{}, fmt.Errorf("detect cgroups: %w", err)
	}
	tree := parse(string(mountinfo))
	if len(tree.mounts) == 0 {
		return Tree{}, errors.New("detect cgroups: no cgroup file system is mounted")
	}
	return tree, nil
}

// parse reads the format of proc_pid_mountinfo(5).
func parse(mountinfo string) Tree {
	var tree Tree
	var tracking string
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		mount, kind, options := left[4], right[0], strings.Split(right[2], ",")
		switch {
		case kind == "cgroup2" && mount == "/sys/fs/cgroup":
			return Tree{Unified: true, mounts: []string{mount}}
		case kind == "cgroup" || kind == "cgroup2":
			tree.mounts = append(tree.mounts, mount)
			if slices.Contains(options, "pids") {
				tracking = mount
			}
			if slices.Contains(options, "cpu") {
				tree.cpu = mount
			}
		}
	}
	// Any v1 hierarchy could track processes. The pids controller is the one that does nothing else by itself.
	if at := slices.Index(tree.mounts, tracking); at > 0 {
		tree.mounts[0], tree.mounts[at] = tree.mounts[at], tree.mounts[0]
	}
	return tree
}

// Make creates the cgroup in every hierarchy, with every controller usable below it.
func (t Tree) Make(name string) error {
	for _, mount := range t.mounts {
		dir := mount
		for part := range strings.SplitSeq(name, "/") {
			if t.Unified {
				delegate(dir)
			}
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make cgroup: %w", err)
			}
		}
	}
	return nil
}

// MakeParent creates the cgroup of a node: as Make, and ready to have cgroups of its own below it.
func (t Tree) MakeParent(name string) error {
	if err := t.Make(name); err != nil {
		return err
	}
	if t.Unified {
		delegate(filepath.Join(t.mounts[0], name))
	}
	return nil
}

// delegate enables the controllers of dir for its children, one by one since not every kernel has them all.
// The kubelet says which one it misses, so that a refusal here needs no report.
func delegate(dir string) {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
}

// Join moves this process into the cgroup by which it will be found again. Its processor time is of this cgroup as well: in the root
// cgroup each of its threads would count as much as all pods of a cluster together.
func (t Tree) Join(name string) error {
	joined := t.mounts[:1]
	if t.cpu != "" && t.cpu != t.mounts[0] {
		joined = append(slices.Clip(joined), t.cpu)
	}
	for _, mount := range joined {
		procs := filepath.Join(mount, name, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// Weigh has a cgroup get as much processor time, where there is not enough, as so many busy threads beside it. On cgroup v2 systemd has
// put everything beside it into cgroups of the same weight.
func (t Tree) Weigh(name string, threads int) error {
	if t.cpu == "" {
		return nil
	}
	const thread = 1024 // cpu.shares of a thread, and of a cgroup that was just made
	shares := strconv.Itoa(threads * thread)
	if err := os.WriteFile(filepath.Join(t.cpu, name, "cpu.shares"), []byte(shares), 0o644); err != nil {
		return fmt.Errorf("weigh cgroup: %w", err)
	}
	return nil
}

// Processes are the processes in the cgroup and below it.
func (t Tree) Processes(name string) ([]int, error) {
	found := map[int]bool{}
	for _, mount := range t.mounts {
		err := filepath.WalkDir(filepath.Join(mount, name), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || !entry.IsDir() {
				return err
			}
			return addProcesses(found, filepath.Join(path, "cgroup.procs"))
		})
		if err != nil {
			return nil, fmt.Errorf("list processes of cgroup %s: %w", name, err)
		}
	}
	var pids []int
	for pid := range found {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}

func addProcesses(found map[int]bool, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// 0 stands for a process of another PID namespace.
		if pid, err := strconv.Atoi(lines.Text()); err == nil && pid > 0 {
			found[pid] = true
		}
	}
	// Reading a cgroup that is being removed gives ENODEV.
	return nil
}

// Remove removes the cgroup and all below it from every hierarchy. No process may be left in them.
func (t Tree) Remove(name string) error {
	var faults []error
	for _, mount := range t.mounts {
		faults = append(faults, remove(filepath.Join(mount, name)))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	return nil
}

func remove(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Names are the cgroups at the top of the hierarchies whose name starts with prefix.
func (t Tree) Names(prefix string) ([]string, error) {
	var names []string
	for _, mount := range t.mounts {
		matches, err := filepath.Glob(filepath.Join(mount, prefix+"*"))
		if err != nil {
			return nil, fmt.Errorf("list cgroups: %w", err)
		}
		for _, match := range matches {
			names = append(names, filepath.Base(match))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Age is how long ago the cgroup last had a cgroup made or removed in it; zero when it is not there.
func (t Tree) Age(name string) time.Duration {
	info, err := os.Stat(filepath.Join(t.mounts[0], name))
	if err != nil {
		return 0
	}
	return time.Since(info.ModTime())
}
