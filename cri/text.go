package cri

import (
	"strings"
	"unicode/utf8"

	"github.com/refit-project/refit/foreign"
)

// clip bounds a foreign sentence to what fits in a log line or a condition message.
func clip(s string) string {
	const most = 512
	return foreign.Shorten(s, most)
}

// bounded gives the first most bytes of b as valid UTF-8: it cuts between runes and replaces what
// is no rune, so that the text can go into an API object. It copies, so b may be freed.
func bounded(b []byte, most int) (text string, cut bool) {
	if len(b) > most {
		cut = true
		for i := most; i >= 0 && i > most-utf8.UTFMax; i-- {
			if utf8.RuneStart(b[i]) {
				most = i
				break
			}
		}
		b = b[:most]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), cut
}
