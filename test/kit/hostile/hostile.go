// Package hostile makes JSON of objects out of the bytes of a fuzz test: objects of a given type, with quantities, times and text
// as attackers write them, since random bytes rarely are JSON of an object. It does not know what the objects are for.
package hostile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What attackers write where a quantity, a time or a text is expected.
var (
	Quantities = []string{"1e2147483647", "1e300000000", "1e-300000000", "1e-2147483648", "100m", "-1", "9e18", "", "x", "1" + strings.Repeat("0", 1000), " 1e300000000", "1Ei"}
	Times      = []string{"9999-12-31T23:59:59Z", "200000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "2026-11-25T04:00:00Z", "", "now", "2026-11-25T04:00:00." + strings.Repeat("9", 1000) + "Z"}
	Texts      = []string{"app", "", "../../etc", "日本\u202e\x00", "\xff\xfe", "ſ\u212a", "{", strings.Repeat("é", 128<<10), "metadata.annotations['a']", "25%", "docker.io/library/nginx@sha256:0"}
)

// What happens where the bytes have been used up: the first byte says it.
const (
	end      = iota // the rest is left out
	plain           // the rest is there, with the first quantity, time and text that is not hostile
	quantity        // and so on for the rest, with the quantity, time or text that the second byte says
	instant
	text
	null     // every field is null
	wrong    // every value is of another type
	repeated // every key is there twice
	deep     // what may be anything is 10,000 levels deep
	many     // every list is long
	themes
)

// Seeds are the attacks, one a seed: in every place of an object at once.
func Seeds() [][]byte {
	seeds := [][]byte{{}, {plain}, {null}, {wrong}, {repeated}, {deep}, {many}}
	for theme, list := range map[byte][]string{quantity: Quantities, instant: Times, text: Texts} {
		for i := range list {
			seeds = append(seeds, []byte{theme, byte(i)})
		}
	}
	slices.SortFunc(seeds, slices.Compare)
	return seeds
}

// maxLevel and maxText bound what is made: the depth of objects where bytes have been used up, and the bytes of all of it.
const (
	maxLevel = 9
	maxText  = 1 << 20
)

// JSON is an object of the type of a value, made of bytes. It is not always valid.
func JSON(of any, bytes []byte) []byte {
	m := &maker{bytes: bytes}
	m.theme = m.next() % themes
	if m.theme == quantity || m.theme == instant || m.theme == text {
		m.which = int(m.next())
	}
	m.write(reflect.TypeOf(of), 0)
	return []byte(m.out.String())
}

// Object is JSON with the kind of an object, which decoders need. It stands last: of repeated keys the last one counts.
func Object(apiVersion, kind string, of any, bytes []byte) []byte {
	made := strings.TrimSuffix(string(JSON(of, bytes)), "}")
	if made != "{" {
		made += ","
	}
	return fmt.Appendf(nil, `%s"apiVersion":%q,"kind":%q}`, made, apiVersion, kind)
}

type maker struct {
	bytes []byte
	theme byte
	which int
	out   strings.Builder
}

func (m *maker) next() byte {
	if len(m.bytes) == 0 {
		return 0
	}
	b := m.bytes[0]
	m.bytes = m.bytes[1:]
	return b
}

// pick takes one of a list: by the bytes, by the theme, or the one that is not hostile.
func (m *maker) pick(list []string, theme byte, honest string) string {
	switch {
	case len(m.bytes) > 0:
		return list[int(m.next())%len(list)]
	case m.theme == theme:
		return list[m.which%len(list)]
	}
	return honest
}

func (m *maker) string(text string) {
	if text == strings.ToValidUTF8(text, "") {
		quoted, err := json.Marshal(text)
		if err != nil {
			panic(err) // strings can always be encoded
		}
		m.out.Write(quoted)
		return
	}
	m.out.WriteString(`"` + text + `"`) // not UTF-8
}

var scalars = map[reflect.Type]byte{
	reflect.TypeFor[resource.Quantity](): quantity, reflect.TypeFor[metav1.Time](): instant, reflect.TypeFor[metav1.MicroTime](): instant,
	reflect.TypeFor[time.Time](): instant, reflect.TypeFor[metav1.Duration](): text, reflect.TypeFor[intstr.IntOrString](): text,
}

func (m *maker) write(t reflect.Type, level int) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch odd := m.odd(level); {
	case m.out.Len() > maxText || odd == null:
		m.out.WriteString("null")
		return
	case odd == wrong:
		m.out.WriteString([]string{`"text"`, `[[]]`, `{"a":{}}`, `1e400`, `true`, `-9223372036854775809`}[level%6])
		return
	case odd == deep:
		m.out.WriteString(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))
		return
	}
	switch scalars[t] {
	case quantity:
		m.string(m.pick(Quantities, quantity, "100m"))
		return
	case instant:
		m.string(m.pick(Times, instant, "2026-11-25T04:00:00Z"))
		return
	case text:
		m.string(m.pick(Texts, text, "1"))
		return
	}
	m.kind(t, level)
}

// odd is what is written instead of a value: by the bytes now and then, by the theme everywhere.
func (m *maker) odd(level int) byte {
	switch {
	case level == 0:
		return end
	case len(m.bytes) > 0:
		return map[byte]byte{255: null, 254: wrong, 253: deep}[m.bytes[0]]
	case m.theme == null || m.theme == wrong && level > 1:
		return m.theme
	case m.theme == deep && level == maxLevel/2:
		return deep
	}
	return end
}

func (m *maker) kind(t reflect.Type, level int) {
	switch {
	case t == nil || t.Kind() == reflect.Interface || t == reflect.TypeFor[json.RawMessage]():
		m.out.WriteString(`{"any":[1,{"cpu":"1e300000000"}]}`)
	case t.Kind() == reflect.String:
		m.string(m.pick(Texts, text, "app"))
	case t.Kind() == reflect.Bool:
		fmt.Fprint(&m.out, m.next()%2 == 0)
	case t.Kind() == reflect.Struct:
		m.out.WriteByte('{')
		m.fields(t, level, new(bool))
		m.out.WriteByte('}')
	case t.Kind() == reflect.Map:
		m.out.WriteByte('{')
		for i := range m.length() {
			m.comma(i > 0)
			m.string(m.pick(Texts, text, "app"))
			m.out.WriteByte(':')
			m.write(t.Elem(), level+1)
		}
		m.out.WriteByte('}')
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		m.string("AAAA")
	case t.Kind() == reflect.Slice:
		m.list(t.Elem(), level)
	default: // numbers
		fmt.Fprint(&m.out, []string{"0", "1", "-1", "2147483647", "-2147483648", "5"}[int(m.next())%6])
	}
}

// length of a list or a map.
func (m *maker) length() int {
	if len(m.bytes) > 0 {
		return int(m.next() % 4)
	}
	return 1
}

func (m *maker) list(of reflect.Type, level int) {
	m.out.WriteByte('[')
	if m.theme == many && len(m.bytes) == 0 && m.out.Len() < maxText/2 {
		m.out.WriteString(strings.Repeat("{},", 20_000))
	}
	for i := range m.length() {
		m.comma(i > 0)
		m.write(of, level+1)
	}
	m.out.WriteByte(']')
}

func (m *maker) comma(needed bool) {
	if needed {
		m.out.WriteByte(',')
	}
}

// fields writes the fields of a struct, each by a byte of its own.
func (m *maker) fields(t reflect.Type, level int, comma *bool) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct {
			m.fields(field.Type, level, comma)
			continue
		}
		times := 1
		switch {
		case len(m.bytes) > 0:
			times = int(m.next()) % 3
		case m.theme == end || level >= maxLevel:
			return
		case m.theme == repeated && level < 4:
			times = 2
		}
		for i := range times {
			m.comma(*comma)
			*comma = true
			key := name
			if i > 0 {
				key = strings.ToUpper(name)
			}
			m.string(key)
			m.out.WriteByte(':')
			m.write(field.Type, level+1)
		}
	}
}
