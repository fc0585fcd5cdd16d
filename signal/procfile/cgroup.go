package procfile

import (
	"bytes"
	"fmt"
	"strings"
)

// Cgroup reads the text of /proc/<pid>/cgroup (cgroups(7)): one line "number:controllers:path" per hierarchy with cgroup
// v1, the single line "0::path" with v2. It returns the container's ID, or an empty string for a process outside of
// containers. Two lines with different containers are an error.
//
// In another cgroup namespace, such as a sidecar's view of other containers, a path begins with "/..".
func Cgroup(b []byte) (string, error) {
	var found string
	for line := range bytes.Lines(b) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		number, rest, ok := bytes.Cut(line, []byte(":"))
		_, path, ok2 := bytes.Cut(rest, []byte(":"))
		if _, digits := ParseUint(number); !ok || !ok2 || !digits {
			return "", fmt.Errorf("cgroup: %w", ErrMalformed)
		}
		id := containerOf(string(path))
		switch {
		case id == "" || id == found:
		case found == "":
			found = id
		default:
			return "", fmt.Errorf("cgroup: %w: containers %s and %s", ErrMalformed, found, id)
		}
	}
	return found, nil
}

// containerOf returns the container ID in a cgroup path: the first ID after the last element with kubepods, or the first
// ID. Cgroups below a container's cgroup are made by that container (systemd or Docker inside it); cgroups above kubepods
// belong to the node (a node that is a container itself).
func containerOf(path string) string {
	elements := strings.Split(path, "/")
	for i := len(elements) - 1; i >= 0; i-- {
		if strings.Contains(elements[i], "kubepods") {
			elements = elements[i:]
			break
		}
	}
	for _, e := range elements {
		if id := elementID(e); id != "" {
			return id
		}
	}
	return ""
}

// elementID returns the ID in one path element. The forms in use:
//
//	<id>                                            cgroupfs driver of containerd and Docker
//	cri-containerd-<id>.scope                       systemd driver of containerd
//	kubepods-pod<uid>.slice:cri-containerd:<id>     containerd told to use systemd by one side only
//	crio-<id>[.scope]                               CRI-O
//	docker-<id>.scope                               Docker and cri-dockerd
//	libpod-<id>[.scope]                             Podman
//
// The monitors of CRI-O and Podman (crio-conmon-<id>, libpod-conmon-<id>) are beside the container, not in it.
func elementID(e string) string {
	if strings.Contains(e, "conmon-") {
		return ""
	}
	e = strings.TrimSuffix(e, ".scope")
	if i := strings.LastIndexAny(e, "-:"); i >= 0 {
		e = e[i+1:]
	}
	if len(e) != 64 || strings.Trim(e, "0123456789abcdef") != "" {
		return ""
	}
	return e
}
