package foreign

import (
	"strings"
	"unicode/utf8"
)

// Cut shortens a text to at most limit bytes of valid UTF-8, between characters.
func Cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Shorten is Cut with "…" appended to a text that was cut: at most limit bytes, and three for "…".
func Shorten(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if short := Cut(text, limit); short != text {
		return short + "…"
	}
	return text
}
