package dashboard

import (
	"slices"
	"time"
)

// View is what a page shows. All of its texts may come from others, and are shown as text.
type View struct {
	Head     Head
	Sections []Section
}

// Head is what is above the tables.
type Head struct {
	Title string `json:"title"`
	// Summary is one sentence, which screen readers announce when it changes.
	Summary  string    `json:"summary"`
	Facts    []Fact    `json:"facts"`
	Notes    []string  `json:"notes"`
	Actions  []Link    `json:"actions"`
	Links    []Link    `json:"links"`
	Pictures []Picture `json:"pictures"`
}

// Fact is a name with a value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Link is a link within the dashboard.
type Link struct {
	Text string `json:"text"`
	Href string `json:"href"`
}

// Picture is an image with its alternative text.
type Picture struct {
	Src string `json:"src"`
	Alt string `json:"alt"`
}

// Section is a table with a heading. Columns of a section do not change.
type Section struct {
	ID, Title string
	// Empty is shown if there are no rows.
	Empty   string
	Columns []string
	Rows    []Row
}

// Row is a row, with a key that is unique in its section.
type Row struct {
	Key   string `json:"key"`
	Cells []Cell `json:"cells"`
}

// Mark colours a cell. The text has the same information.
type Mark string

// Marks of cells.
const (
	MarkGood Mark = "good"
	MarkBusy Mark = "busy"
	MarkBad  Mark = "bad"
)

// Cell is the text of a cell, with an optional link.
type Cell struct {
	Text string `json:"text"`
	Href string `json:"href,omitempty"`
	Mark Mark   `json:"mark,omitempty"`
}

// unread is what a table says that has no rows because objects could not be read.
const unread = "Not known: what cannot be read is named above."

func text(of string) Cell { return Cell{Text: of} }

// clock returns a time in the zone of the user.
func clock(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

// change is what has to be changed in a page.
type change struct {
	// Head is nil if it is as before.
	Head     *Head                    `json:"head,omitempty"`
	Sections map[string]sectionChange `json:"sections,omitempty"`
}

type sectionChange struct {
	Set []Row `json:"set,omitempty"`
	// Order has the keys of all rows, if rows were added, removed or moved.
	Order []string `json:"order,omitempty"`
	// Ordered tells an empty order from none.
	Ordered bool `json:"ordered,omitempty"`
	// Empty is shown if there are no rows, if that has changed.
	Empty string `json:"empty,omitempty"`
}

// difference returns what has to be changed in a page that shows a view. Everything is new if there was no view.
func difference(from, to *View) (c change, changed bool) {
	if from == nil || !from.Head.equal(&to.Head) {
		c.Head, changed = &to.Head, true
	}
	c.Sections = map[string]sectionChange{}
	for _, section := range to.Sections {
		old := map[string]Row{}
		var before []string
		var was Section
		if from != nil {
			was = from.section(section.ID)
		}
		for _, row := range was.Rows {
			old[row.Key], before = row, append(before, row.Key)
		}
		var one sectionChange
		if was.Empty != section.Empty {
			one.Empty = section.Empty
		}
		keys := make([]string, 0, len(section.Rows))
		for _, row := range section.Rows {
			keys = append(keys, row.Key)
			if known, exists := old[row.Key]; !exists || !slices.Equal(known.Cells, row.Cells) {
				one.Set = append(one.Set, row)
			}
		}
		if from == nil || !slices.Equal(before, keys) {
			one.Order, one.Ordered = keys, true
		}
		if one.Ordered || len(one.Set) > 0 || one.Empty != "" {
			c.Sections[section.ID], changed = one, true
		}
	}
	return c, changed
}

func (v *View) section(id string) Section {
	for _, section := range v.Sections {
		if section.ID == id {
			return section
		}
	}
	return Section{}
}

func (h *Head) equal(other *Head) bool {
	return h.Title == other.Title && h.Summary == other.Summary && slices.Equal(h.Facts, other.Facts) && slices.Equal(h.Notes, other.Notes) &&
		slices.Equal(h.Actions, other.Actions) && slices.Equal(h.Links, other.Links) && slices.Equal(h.Pictures, other.Pictures)
}
