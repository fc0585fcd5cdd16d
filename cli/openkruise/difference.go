package openkruise

import (
	"fmt"
	"strings"
)

// Direction is the direction of the replacement.
type Direction string

// Directions of a replacement.
const (
	ToRefit   Direction = "to-refit"
	FromRefit Direction = "from-refit"
)

// Both names both directions together.
const Both = "both"

// Directions returns the directions for a name; none for an empty name.
func Directions(name string) ([]Direction, error) {
	switch Direction(name) {
	case "":
		return nil, nil
	case Both:
		return []Direction{ToRefit, FromRefit}, nil
	case ToRefit, FromRefit:
		return []Direction{Direction(name)}, nil
	}
	return nil, fmt.Errorf("direction %q: want %s, %s or %s", name, ToRefit, FromRefit, Both)
}

// Difference is a different behavior of one object after the replacement.
type Difference struct {
	Direction Direction
	// Kind and Name of the object. Name is NAMESPACE/NAME, and empty for all objects of the kind together.
	Kind, Name string
	// Differs says what behaves differently, and Do what to do about it. Both have no full stop.
	Differs, Do string
}

// of collects the differences of one object.
type of struct {
	kind, name string
	found      []Difference
}

func (o *of) to(differs, do string) { o.add(ToRefit, differs, do) }

func (o *of) from(differs, do string) { o.add(FromRefit, differs, do) }

func (o *of) both(differs, do string) {
	o.to(differs, do)
	o.from(differs, do)
}

func (o *of) add(direction Direction, differs, do string) {
	o.found = append(o.found, Difference{Direction: direction, Kind: o.kind, Name: o.name, Differs: differs, Do: do})
}

// named returns the name of an object as users write it.
func named(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Entry is a difference of one object, or of several with the same difference.
type Entry struct {
	Direction Direction `json:"direction"`
	Object    string    `json:"object"`
	Differs   string    `json:"differs"`
	Do        string    `json:"do"`
}

const (
	// shown is the maximum number of names in an entry.
	shown = 3
	// maxEntries bounds the memory: entries contain text of objects.
	maxEntries = 1000
)

// Collection merges equal differences of several objects. The zero value is empty.
type Collection struct {
	keys    []Difference // differences without names
	objects map[Difference]*Objects
	omitted int
}

// Add adds differences.
func (c *Collection) Add(found ...Difference) {
	for _, difference := range found {
		name := difference.Name
		difference.Name = ""
		objects := c.objects[difference]
		switch {
		case objects == nil && len(c.keys) == maxEntries:
			c.omitted++
			continue
		case objects == nil:
			objects = &Objects{}
			if c.objects == nil {
				c.objects = map[Difference]*Objects{}
			}
			c.keys, c.objects[difference] = append(c.keys, difference), objects
		}
		if name != "" {
			objects.Add(name)
		}
	}
}

// Entries returns the differences in a direction, in the order in which they were added.
func (c *Collection) Entries(direction Direction) []Entry {
	var entries []Entry
	for _, key := range c.keys {
		if key.Direction == direction {
			entries = append(entries, Entry{Direction: direction, Object: c.objects[key].of(key.Kind), Differs: key.Differs, Do: key.Do})
		}
	}
	return entries
}

// Omitted returns how many differences are in no entry, because there are too many distinct ones.
func (c *Collection) Omitted() int { return c.omitted }

// Objects counts the objects of one kind, and has the names of the first few.
type Objects struct {
	// Count is the number of objects.
	Count int
	// Names are the names of the first objects.
	Names []string
}

// Add adds one object.
func (o *Objects) Add(name string) {
	o.Count++
	if len(o.Names) < shown {
		o.Names = append(o.Names, name)
	}
}

// String returns the count and the names.
func (o Objects) String() string {
	switch more := o.Count - len(o.Names); {
	case o.Count == 0:
		return "none"
	case more > 0:
		return fmt.Sprintf("%d objects: %s and %d more", o.Count, strings.Join(o.Names, ", "), more)
	case o.Count == 1:
		return "1 object: " + o.Names[0]
	}
	return fmt.Sprintf("%d objects: %s", o.Count, strings.Join(o.Names, ", "))
}

// of returns the names of the objects with their kind.
func (o *Objects) of(kind string) string {
	switch more := o.Count - len(o.Names); {
	case o.Count == 0:
		return kind
	case o.Count == 1:
		return kind + " " + o.Names[0]
	case more > 0:
		return fmt.Sprintf("%s %s and %d more", plural(kind), strings.Join(o.Names, ", "), more)
	}
	return plural(kind) + " " + strings.Join(o.Names, ", ")
}

func plural(kind string) string {
	if stem, found := strings.CutSuffix(kind, "y"); found {
		return stem + "ies"
	}
	return kind + "s"
}
