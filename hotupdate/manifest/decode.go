package manifest

import (
	"encoding/json"
	"fmt"
)

// An element of a list takes 72 to 136 bytes of memory, even if it is "{}", three bytes of text with its comma. Elements
// written by Refit contain at least a digest. Lists of up to fewElements may have shorter ones.
const (
	minElement  = 64 // bytes of text
	fewElements = 64
)

// Decode reads a manifest, which others may have replaced. Its memory is bounded by the length of the text.
func Decode(text []byte) (Revision, error) {
	var stored struct {
		Revision

		Sources   list[Origin] `json:"sources"`
		Files     list[File]   `json:"files"`
		Requested struct {
			Requested

			Sources list[Origin] `json:"sources"`
			Hidden  list[File]   `json:"hidden"`
		} `json:"requested"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return Revision{}, err
	}
	r := stored.Revision
	r.Sources, r.Files = stored.Sources, stored.Files
	r.Requested = stored.Requested.Requested
	r.Requested.Sources, r.Requested.Hidden = stored.Requested.Sources, stored.Requested.Hidden
	return r, nil
}

// list is decoded only if its elements are as long as the ones that Refit writes.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(text []byte) error {
	n := count(text)
	if most := fewElements + len(text)/minElement; n > most {
		return fmt.Errorf("%d elements in %d bytes, at most %d", n, len(text), most)
	}
	if n == 0 {
		return json.Unmarshal(text, (*[]T)(l))
	}
	elements := make([]T, 0, n)
	err := json.Unmarshal(text, &elements)
	*l = elements
	return err
}

// count returns an upper bound of the number of elements of a list in JSON; 0 if it is not a list, or empty.
func count(text []byte) int {
	level, n := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			if level++; level == 1 && len(text) > len("[]") {
				n = 1
			}
		case ']', '}':
			level--
		case ',':
			if level == 1 {
				n++
			}
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}
