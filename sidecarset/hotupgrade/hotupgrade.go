// Package hotupgrade decides about a sidecar for which a pod has two containers: one works while the other runs an
// empty image. In an upgrade the empty one gets the new image and takes over, and then the old one gets the empty
// image.
//
// The containers learn about it from annotations to which their environment refers. This contract is OpenKruise's.
package hotupgrade

import (
	"strconv"

	"github.com/refit-project/refit/api/v1beta1"
)

// Containers returns the names of the two containers of a sidecar.
func Containers(sidecar string) [2]string { return [2]string{sidecar + "-1", sidecar + "-2"} }

// Twin is one of the two containers.
type Twin struct {
	Name  string
	Image string // in the pod's spec
	// Version and Alt are its annotations: its own version, or "0" for the empty image, and the version of the other
	// container.
	Version, Alt string
}

// Sidecar is the actual and desired state of a sidecar in a pod.
type Sidecar struct {
	Name  string
	Twins [2]Twin
	// Working is the container named in the pod's annotation; during an upgrade it is the new one.
	Working string

	Image, Empty string // the desired images
	// TakenOver says that the working container runs its image and has taken over.
	TakenOver bool
	// TimedOut says that it has not taken over in time and that the upgrade has to be aborted.
	TimedOut bool
	// Version is the version of the SidecarSet: an increasing number.
	Version uint64
}

// Kind says what to do.
type Kind string

// The kinds.
const (
	Settled  Kind = "Settled"  // one container works with the wanted image, the other has the empty one
	Upgrade  Kind = "Upgrade"  // the empty container gets the wanted image
	Wait     Kind = "Wait"     // until the new container takes over
	Reset    Kind = "Reset"    // the new container has taken over: the old one gets the empty image
	Retarget Kind = "Retarget" // the new container has not taken over and gets yet another image
	Return   Kind = "Return"   // the old container has the wanted image and still works: the new one gets the empty image
	Abort    Kind = "Abort"    // the new container has not taken over in time: like Return, although the old image is not the wanted one
	Empty    Kind = "Empty"    // the empty container gets another empty image
)

// Action is what to do.
type Action struct {
	Kind Kind
	// Container is the container to change, and Image its new image.
	Container, Image string
	// Working is the container to name in the annotation.
	Working string
	// Annotations are the annotations of the pod to set.
	Annotations map[string]string
}

// Begun reports whether an upgrade is in progress: both containers have an image that is not empty.
func (s *Sidecar) Begun() bool {
	_, other := s.split()
	return !s.idle(other)
}

// New returns the container that works, or that has to take over.
func (s *Sidecar) New() string {
	working, _ := s.split()
	return working.Name
}

// Next returns what to do. From any images of the two containers, the steps lead to Settled when the containers run.
// This includes a return to the old image if the new one is faulty.
func (s *Sidecar) Next() Action {
	working, other := s.split()
	if s.idle(other) {
		switch {
		case working.Image != s.Image:
			return s.upgrade(working, other)
		case other.Image != s.Empty:
			return Action{Kind: Empty, Container: other.Name, Image: s.Empty, Working: working.Name}
		default:
			return Action{Kind: Settled, Working: working.Name}
		}
	}
	switch {
	case s.TakenOver:
		return s.keepWorking(Reset, working, other)
	case working.Image != s.Image && other.Image == s.Image:
		return s.keepWorking(Return, other, working)
	case working.Image != s.Image:
		return s.retarget(working, other)
	case s.TimedOut:
		return s.keepWorking(Abort, other, working)
	default:
		return Action{Kind: Wait, Working: working.Name}
	}
}

// split returns the working container first: the one named in the annotation, or else the one that is not empty or has
// the higher version.
func (s *Sidecar) split() (working, other *Twin) {
	first, second := &s.Twins[0], &s.Twins[1]
	switch {
	case s.Working == first.Name && !s.idle(first):
		return first, second
	case s.Working == second.Name && !s.idle(second):
		return second, first
	case s.idle(first) && !s.idle(second):
		return second, first
	case !s.idle(first) && !s.idle(second) && number(second.Version) > number(first.Version):
		return second, first
	default:
		return first, second
	}
}

// idle reports whether the container has the empty image, of this version of the SidecarSet or, according to the
// annotation, of an earlier one.
func (s *Sidecar) idle(twin *Twin) bool {
	if twin.Image == s.Empty {
		return true
	}
	return twin.Version == "0" && twin.Image != s.Image && !s.both("0")
}

// both reports whether both containers have this version. That only happens if the annotations were tampered with.
func (s *Sidecar) both(version string) bool {
	return s.Twins[0].Version == version && s.Twins[1].Version == version
}

func (s *Sidecar) upgrade(working, empty *Twin) Action {
	version := s.next()
	return Action{Kind: Upgrade, Container: empty.Name, Image: s.Image, Working: empty.Name, Annotations: map[string]string{
		v1beta1.PrefixSidecarSetVersion + empty.Name:      version,
		v1beta1.PrefixSidecarSetVersionAlt + empty.Name:   working.Version,
		v1beta1.PrefixSidecarSetVersionAlt + working.Name: version,
	}}
}

func (s *Sidecar) retarget(newer, old *Twin) Action {
	version := s.next()
	return Action{Kind: Retarget, Container: newer.Name, Image: s.Image, Working: newer.Name, Annotations: map[string]string{
		v1beta1.PrefixSidecarSetVersion + newer.Name:    version,
		v1beta1.PrefixSidecarSetVersionAlt + newer.Name: old.Version,
		v1beta1.PrefixSidecarSetVersionAlt + old.Name:   version,
	}}
}

// keepWorking keeps one container working and empties the other.
func (s *Sidecar) keepWorking(kind Kind, works, empty *Twin) Action {
	return Action{Kind: kind, Container: empty.Name, Image: s.Empty, Working: works.Name, Annotations: map[string]string{
		v1beta1.PrefixSidecarSetVersion + empty.Name:    "0",
		v1beta1.PrefixSidecarSetVersionAlt + works.Name: "0",
	}}
}

// next returns a version above all versions that the containers know. They compare versions as numbers.
func (s *Sidecar) next() string {
	highest := s.Version
	for i := range s.Twins {
		highest = max(highest, number(s.Twins[i].Version)+1, number(s.Twins[i].Alt)+1)
	}
	return strconv.FormatUint(highest, 10)
}

// number parses a version; it returns 0 for an invalid one. Extremely large versions, which only the pod's owner can
// have written, are invalid too.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 62)
	if err != nil {
		return 0
	}
	return n
}
