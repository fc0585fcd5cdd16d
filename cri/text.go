package cri

import (
	"strings"
	"unicode/utf8"

	"github.com/refit-project/refit/internal/foreign"
)

// clip bounds untrusted text for a log line or a condition message.
func clip(s string) string {
	const most = 512
	return foreign.Shorten(s, most)
}

// bounded returns at most the first most bytes of b as valid UTF-8, for API objects, and whether that is not all of it. It copies, so b
// may be freed.
func bounded(b []byte, most int) (text string, cut bool) {
	// The character at the limit is copied whole, the rest is not copied.
	all := strings.ToValidUTF8(string(b[:min(len(b), most+utf8.UTFMax)]), "\uFFFD")
	text = foreign.Cut(all, most)
	return text, len(b) > most || len(text) < len(all)
}
