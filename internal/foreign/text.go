package foreign

import (
	"strings"
	"unicode"
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

// Printable returns the text without characters that could forge a line or change what a terminal shows.
func Printable(text string) string { return strings.Map(printable, text) }

// PrintableLines is Printable for a text that may have several lines: it keeps line breaks and tabs.
func PrintableLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printable(r)
	}, text)
}

// printable returns the character, or -1 if a terminal does not just show it.
func printable(r rune) rune {
	if r == utf8.RuneError || !unicode.IsPrint(r) {
		return -1
	}
	return r
}

// Shorten is Cut with "…" appended to a text that was cut: at most limit bytes, and three for "…".
func Shorten(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if short := Cut(text, limit); short != text {
		return short + "…"
	}
	return text
}
