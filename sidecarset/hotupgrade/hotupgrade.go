// Package hotupgrade decides about a sidecar that a pod has two containers of, one of which works while the other runs an
// empty image. To upgrade it, the empty one gets the new image, takes over, and then the old one gets the empty image.
//
// What the containers are told of it, by annotations that their environment refers to, is OpenKruise's contract.
package hotupgrade

import (
	"strconv"

	"github.com/refit-project/refit/api/v1beta1"
)

// Containers are the names of the two containers of a sidecar.
func Containers(sidecar string) [2]string { return [2]string{sidecar + "-1", sidecar + "-2"} }

// Twin is one of the two containers.
type Twin struct {
	Name  string
	Image string // in the pod's spec
	// Version and Alt are its annotations: its own version, "0" for the empty image, and that of the other container.
	Version, Alt string
}

// Sidecar is a sidecar of a pod, as it is and as it is to be.
type Sidecar struct {
	Name  string
	Twins [2]Twin
	// Working is the container that the pod's annotation names; while an upgrade is under way it is the new one.
	Working string

	Image, Empty string // that are wanted
	// TakenOver says that the working container runs its image and has taken over.
	TakenOver bool
	// TimedOut says that it has not taken over in time and that the upgrade is to be given up.
	TimedOut bool
	// Version of the SidecarSet: a number that grows.
	Version uint64
}

// Kind is what is to be done.
type Kind string

// The kinds.
const (
	Settled  Kind = "Settled"  // one container works with the wanted image, the other has the empty one
	Upgrade  Kind = "Upgrade"  // the empty container gets the wanted image
	Wait     Kind = "Wait"     // for the new container to take over
	Reset    Kind = "Reset"    // the new container has taken over: the old one gets the empty image
	Retarget Kind = "Retarget" // the new container has not taken over and gets yet another image
	Return   Kind = "Return"   // the old container has the wanted image and still works: the new one gets the empty image
	Abort    Kind = "Abort"    // the new container has not taken over in time: as Return, although the old image is not wanted
	Empty    Kind = "Empty"    // the empty container gets another empty image
)

// Action is what is to be done.
type Action struct {
	Kind Kind
	// Container gets this image.
	Container, Image string
	// Working is the container that the annotation is to name.
	Working string
	// Annotations of the pod.
	Annotations map[string]string
}

// Begun reports whether an upgrade is under way: both containers have an image that is not empty.
func (s *Sidecar) Begun() bool {
	_, other := s.split()
	return !s.idle(other)
}

// New is the container that works, or is to take over.
func (s *Sidecar) New() string {
	working, _ := s.split()
	return working.Name
}

// Next says what is to be done. Whatever images the two containers have, the steps that follow lead to Settled once the
// containers run: also back to the old image when the new one is faulty.
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
		return s.settle(Reset, working, other)
	case working.Image != s.Image && other.Image == s.Image:
		return s.settle(Return, other, working)
	case working.Image != s.Image:
		return s.retarget(working, other)
	case s.TimedOut:
		return s.settle(Abort, other, working)
	default:
		return Action{Kind: Wait, Working: working.Name}
	}
}

// split finds the working container: the one that the annotation names; without one, the one that is not empty, or has the
// higher version.
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

// idle reports whether the container has the empty image, of this version of the SidecarSet or, by the annotation, of an
// earlier one.
func (s *Sidecar) idle(twin *Twin) bool {
	if twin.Image == s.Empty {
		return true
	}
	return twin.Version == "0" && twin.Image != s.Image && !s.both("0")
}

// both reports whether both containers have this version: the annotations were tampered with then.
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

// settle leaves one container working and empties the other.
func (s *Sidecar) settle(kind Kind, works, empty *Twin) Action {
	return Action{Kind: kind, Container: empty.Name, Image: s.Empty, Working: works.Name, Annotations: map[string]string{
		v1beta1.PrefixSidecarSetVersion + empty.Name:    "0",
		v1beta1.PrefixSidecarSetVersionAlt + works.Name: "0",
	}}
}

// next is a version above every one that the containers know: they compare them as numbers.
func (s *Sidecar) next() string {
	highest := s.Version
	for i := range s.Twins {
		highest = max(highest, number(s.Twins[i].Version)+1, number(s.Twins[i].Alt)+1)
	}
	return strconv.FormatUint(highest, 10)
}

// number of a version; 0 for what is none. Versions that a pod's owner has made absurdly large are as none.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 62)
	if err != nil {
		return 0
	}
	return n
}
