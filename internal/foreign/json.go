package foreign

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of JSON.
const (
	MaxAnnotation = 256 << 10 // bytes; all annotations of an object have no more
	MaxObject     = 8 << 20   // bytes; an object of the API has at most 1.5 MiB, and twice that as JSON
	MaxDepth      = 64        // of objects and lists; a pod is 20 deep
	MaxValues     = 100_000   // lists, objects and their elements together: each takes memory when it is decoded, and at least 2 bytes of text
	MaxElements   = 10_000    // of one list or object; a container takes 700 bytes even if it is empty
)

// JSON decodes the JSON of an annotation or a message into a pointer to a typed value. Every quantity and every time in it
// is checked as by [Quantity] and [Time], except inside a json.RawMessage. The value must not be used after an error.
func JSON[T ~string | ~[]byte](text T, into any) error {
	return decode([]byte(text), into, MaxAnnotation)
}

// Object is JSON for an object of the API, a manifest or another file with at most MaxObject bytes.
func Object(text []byte, into any) error { return decode(text, into, MaxObject) }

// CheckObject checks, as Object does, a text that a library decodes afterwards. into has the type of the value and is not
// changed.
func CheckObject(text []byte, into any) error { return bounded(text, into, MaxObject) }

// Value decodes JSON as Object does, without types: into maps, lists, strings, booleans and numbers as text (json.Number),
// because a float64 cannot hold every user ID.
func Value(text []byte) (value any, err error) {
	if err := CheckObject(text, nil); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, unreadable("%v", err)
	}
	return value, nil
}

func decode(text []byte, into any, most int) error {
	if err := bounded(text, into, most); err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return unreadable("%v", err)
	}
	return nil
}

// bounded returns why a text cannot be decoded within the bounds. A nil error does not mean that the text is valid JSON.
func bounded(text []byte, into any, most int) error {
	if len(text) > most {
		return unreadable("JSON has at most %d bytes here, this has %d", most, len(text))
	}
	doubtful, err := scan(text)
	if err == nil && doubtful && into != nil {
		err = check(text, into)
	}
	return err
}

// scan counts the levels and elements of a text. It reports whether a string or number in it may be a quantity or a time
// out of bounds, which could take very long to decode. That is true for few texts of honest users. Invalid JSON need not be
// detected.
func scan(text []byte) (doubtful bool, err error) {
	level, values := 0, 0
	var elements [MaxDepth + 1]int // of the list or object that is open at each level
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '{' || c == '[':
			if level++; level > MaxDepth {
				return false, unreadable("JSON is more than %d levels deep", MaxDepth)
			}
			values++
			elements[level] = 1
		case c == '}' || c == ']':
			level = max(level-1, 0)
		case c == ',':
			values++
			if elements[level]++; elements[level] > MaxElements {
				return false, unreadable("JSON has a list or an object of more than %d elements", MaxElements)
			}
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			doubtful = doubtful || odd(text[i+1:min(end, len(text))])
			i = end
		case c >= '0' && c <= '9' || c == '-':
			end := i + 1
			for end < len(text) && strings.IndexByte("0123456789+-.eE", text[end]) >= 0 {
				end++
			}
			doubtful = doubtful || odd(text[i:end])
			i = end - 1
		}
	}
	if values > MaxValues {
		return false, unreadable("JSON has more than %d values", MaxValues)
	}
	return doubtful, nil
}

// odd reports whether a string or number may be a quantity or a time out of bounds.
func odd(token []byte) bool {
	if len(token) == 0 || token[0] > '9' && token[0] < utf8.RuneSelf && token[0] != '\\' {
		return false // the remaining text begins with a digit, a sign, a point or space
	}
	if len(token) > MaxQuantity || bytes.IndexByte(token, '\\') >= 0 {
		return true
	}
	if len(token) > 4 && token[4] == '-' && (slices.Compare(token[:4], []byte("1970")) < 0 || slices.Compare(token[:4], []byte("2200")) >= 0) {
		return true
	}
	at := bytes.IndexAny(token, "eE")
	return at >= 0 && len(bytes.TrimLeft(token[at+1:], "+-")) > 1
}
