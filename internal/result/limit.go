package result

import (
	"maps"
	"slices"
	"strings"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
)

const (
	// MaxMessage bounds the message of a condition and of an Event, in bytes (the API's limit of an Event's note).
	MaxMessage = 1024
	// MaxValue bounds one annotation or field, in bytes. All annotations of an object share 256 KiB.
	MaxValue = 16 << 10
	// MaxLabel bounds the value of a label, in bytes (API conventions: labels).
	MaxLabel = 63
)

// LabelValue returns a valid label value for any text: it replaces invalid characters by "-", keeps at most 63 bytes, and
// removes characters at both ends until these are letters or digits. Text without letters and digits gives the empty value,
// which is valid.
func LabelValue(s string) string {
	valid := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, strings.TrimSpace(s))
	const ends = "-_."
	return strings.TrimRight(foreign.Cut(strings.TrimLeft(valid, ends), MaxLabel), ends)
}

// FitMessages cuts messages until they take at most space bytes as JSON (SizeOfMessages). All messages of one owner are cut
// to the same length, halved from MaxMessage, always for the owner whose messages take most: an owner with short messages
// keeps them whole. It returns the shortest length; MaxMessage if nothing had to be cut.
func FitMessages(byOwner map[string][]*string, space int) (shortest int) {
	lengths, sizes, total := map[string]int{}, map[string]int{}, 0
	cut := func(owner string, length int) {
		for _, message := range byOwner[owner] {
			*message = foreign.Cut(*message, length)
		}
		total -= sizes[owner]
		lengths[owner], sizes[owner] = length, SizeOfMessages(byOwner[owner])
		total += sizes[owner]
	}
	owners := slices.Sorted(maps.Keys(byOwner))
	for _, owner := range owners {
		cut(owner, MaxMessage)
	}
	shortest = MaxMessage
	for total > space {
		largest, found := "", false
		for _, owner := range owners {
			if lengths[owner] > 0 && (!found || sizes[owner] > sizes[largest]) {
				largest, found = owner, true
			}
		}
		if !found {
			break
		}
		cut(largest, lengths[largest]/2)
		shortest = min(shortest, lengths[largest])
	}
	return shortest
}

// SizeOfMessages returns the size of messages as JSON, in bytes.
func SizeOfMessages(messages []*string) int {
	return len(must.JSON(messages))
}
