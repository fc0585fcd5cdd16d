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

// bounded returns the first most bytes of b as valid UTF-8, for API objects: it cuts between characters and replaces
// invalid ones. It copies, so b may be freed.
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
