package signal

import (
	"cmp"
	"fmt"
	"slices"
)

// Choice selects among several matches.
type Choice int

const (
	// Only allows exactly one match.
	Only Choice = iota
	// Oldest is the match that started first. Among all processes of a container it is the init process.
	Oldest
	// Newest is the match that started last.
	Newest
	// Parent is the match that is an ancestor of all other matches, such as nginx's master in a group with one executable.
	Parent
	// All selects every match.
	All
)

var choices = [...]string{Only: "only", Oldest: "oldest", Newest: "newest", Parent: "parent", All: "all"}

// ParseChoice reads the text form; the empty string is Only.
func ParseChoice(s string) (Choice, error) {
	if s == "" {
		return Only, nil
	}
	if i := slices.Index(choices[:], s); i >= 0 {
		return Choice(i), nil
	}
	return 0, fmt.Errorf("choice %q: want one of %v", s, choices)
}

func (c Choice) String() string {
	if c < Only || c > All {
		return fmt.Sprintf("Choice(%d)", int(c))
	}
	return choices[c]
}

// pick applies c to one or more matches, in order of PID.
func (c Choice) pick(found []Process) ([]Process, error) {
	if len(found) == 1 || c == All {
		return found, nil
	}
	byAge := func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	}
	switch c {
	case Oldest:
		return []Process{slices.MinFunc(found, byAge)}, nil
	case Newest:
		return []Process{slices.MaxFunc(found, byAge)}, nil
	case Parent:
		return parent(found)
	default:
		return nil, &AmbiguousError{Candidates: found, Reason: "exactly one is wanted"}
	}
}

// parent follows only parents inside of the group. A process between two matches that does not match itself therefore
// leaves two roots, which is an error.
func parent(found []Process) ([]Process, error) {
	members := make(map[int]bool, len(found))
	for _, p := range found {
		members[p.PID] = true
	}
	heads := slices.DeleteFunc(slices.Clone(found), func(p Process) bool { return members[p.PPID] })
	if len(heads) == 1 {
		return heads, nil
	}
	return nil, &AmbiguousError{Candidates: found, Reason: fmt.Sprintf("one parent of all is wanted and %d have none among them", len(heads))}
}
