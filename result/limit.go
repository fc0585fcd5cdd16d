package result

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxMessage bounds the message of a condition and of an Event, in bytes (the API's limit of an Event's note).
	MaxMessage = 1024
	// MaxValue bounds one annotation or field, in bytes. All annotations of an object share 256 KiB.
	MaxValue = 16 << 10
	// MaxLabel bounds the value of a label, in bytes (API conventions: labels).
	MaxLabel = 63
)

// Cut shortens s to at most limit bytes of valid UTF-8, between runes.
func Cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// LabelValue makes a valid label value of any text: what a label may not hold becomes "-", at most 63 bytes stay,
// and both ends are letters or digits. Text without any of these gives the empty value, which is valid.
func LabelValue(s string) string {
	valid := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, strings.TrimSpace(s))
	const ends = "-_."
	return strings.TrimRight(Cut(strings.TrimLeft(valid, ends), MaxLabel), ends)
}

// FitMessages cuts all messages to one length, halved from MaxMessage until size, which measures what they are part of
// in bytes, is at most limit. It returns that length: MaxMessage when nothing had to be cut, 0 when even that is too
// much.
func FitMessages(messages []*string, limit int, size func() (int, error)) (int, error) {
	for most := MaxMessage; ; most /= 2 {
		for _, message := range messages {
			*message = Cut(*message, most)
		}
		n, err := size()
		if err != nil || n <= limit || most == 0 {
			return most, err
		}
	}
}
