package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of JSON.
const (
	MaxAnnotation = 256 << 10 // bytes; all annotations of an object have no more
	MaxDepth      = 64        // of objects and lists
)

// JSON decodes the JSON of an annotation or a message into a pointer to a typed value. Every quantity and every time in it
// is one that [Quantity] and [Time] would read; those of a json.RawMessage are not looked at. The value is not to be used if
// there is an error.
func JSON[T ~string | ~[]byte](text T, into any) error {
	return decode([]byte(text), into)
}

func decode(text []byte, into any) error {
	if len(text) > MaxAnnotation {
		return unreadable("JSON has at most %d bytes here, this has %d", MaxAnnotation, len(text))
	}
	depth, doubtful := scan(text)
	if depth > MaxDepth {
		return unreadable("JSON is more than %d levels deep", MaxDepth)
	}
	if doubtful {
		if err := check(text, into); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return unreadable("%v", err)
	}
	return nil
}

// scan returns how deep the text is, and whether a string or number in it may be a quantity or a time out of bounds, which
// decoding alone could be enough to make last for hours. It is doubtful of few texts of honest users, and a text that is no
// JSON does not matter.
func scan(text []byte) (depth int, doubtful bool) {
	level := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '{' || c == '[':
			level++
			depth = max(depth, level)
		case c == '}' || c == ']':
			level--
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
	return depth, doubtful
}

// odd reports whether a string or number may be a quantity or a time out of bounds.
func odd(token []byte) bool {
	if len(token) == 0 || token[0] > '9' && token[0] < utf8.RuneSelf && token[0] != '\\' {
		return false // what is left begins with a digit, a sign, a point or space
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

// check reads the text without decoding it into its types, and looks at what would become a quantity or a time. It reads
// tokens, since json.Unmarshal decodes all values of a key that occurs twice.
func check(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return checkNext(decoder, reflect.TypeOf(into))
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	timeTypes    = []reflect.Type{reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[time.Time]()}
)

// checkNext reads one value that is to be decoded into the type; nil if into none.
func checkNext(from *json.Decoder, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := from.Token()
	if err != nil {
		return unreadable("%v", err)
	}
	switch token := token.(type) {
	case string:
		return checkText(token, t)
	case json.Number:
		return checkText(token.String(), t)
	case json.Delim:
		return checkElements(from, token, t)
	}
	return nil
}

// checkElements reads the rest of a list or an object.
func checkElements(from *json.Decoder, kind json.Delim, t reflect.Type) error {
	for from.More() {
		key := ""
		if kind == '{' {
			token, err := from.Token()
			if err != nil {
				return unreadable("%v", err)
			}
			key, _ = token.(string)
		}
		if err := checkNext(from, elementOf(t, key)); err != nil {
			return fmt.Errorf("%s: %w", Cut(key, MaxQuantity), err)
		}
	}
	if _, err := from.Token(); err != nil {
		return unreadable("%v", err)
	}
	return nil
}

func checkText(text string, t reflect.Type) (err error) {
	switch {
	case t == quantityType:
		_, err = Quantity(text)
	case slices.Contains(timeTypes, t):
		_, err = Time(text)
	}
	return err
}

// elementOf is the type of a value in a list, map or struct; nil if there is none. A key can mean several fields, since
// encoding/json ignores case: the first is taken, and no type of the API has two.
func elementOf(t reflect.Type, key string) reflect.Type {
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return t.Elem()
	case t.Kind() != reflect.Struct:
		return nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			embedded := field.Type
			for embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if found := elementOf(embedded, key); found != nil {
				return found
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		if strings.EqualFold(name, key) {
			return field.Type
		}
	}
	return nil
}
