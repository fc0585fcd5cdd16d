// Package identity has the types that identify pods, containers and container instances in all of Refit. It imports no
// client and reads no clock and no file; functions that can fail for a reason other than malformed text belong elsewhere.
package identity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refit-project/refit/internal/foreign"
)

// ErrMalformed is wrapped by every parse error of this package.
var ErrMalformed = errors.New("malformed")

// Pod identifies one pod for its whole life. Pods with the same name, as a StatefulSet creates them, differ in UID; code
// that changes a pod compares the whole value.
type Pod struct {
	Namespace, Name string
	UID             string
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// ContainerID names one instance of a container: kubelet creates a new one at every start.
// It is the identity by which Refit decides whether a container has been recreated.
//
// The text form is the same as in corev1.ContainerStatus.ContainerID, "<runtime>://<id>".
type ContainerID struct {
	Runtime string // the runtime's name for itself, for example "containerd" or "cri-o"
	ID      string // opaque; 64 hexadecimal digits in practice
}

// ParseContainerID reads the text form. The empty string is malformed: a container without an ID has never been started.
func ParseContainerID(s string) (ContainerID, error) {
	runtime, id, ok := strings.Cut(s, "://")
	if !ok || runtime == "" || id == "" || strings.ContainsAny(id, "/ \t\n") {
		return ContainerID{}, fmt.Errorf("container ID %q: %w: want <runtime>://<id>", clip(s), ErrMalformed)
	}
	return ContainerID{Runtime: runtime, ID: id}, nil
}

func (c ContainerID) String() string { return c.Runtime + "://" + c.ID }

// IsZero reports whether c names no instance.
func (c ContainerID) IsZero() bool { return c == ContainerID{} }

// clip bounds untrusted input before it is logged or written to the API.
func clip(s string) string {
	const most = 100
	return foreign.Shorten(s, most)
}
