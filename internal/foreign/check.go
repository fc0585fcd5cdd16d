package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// check reads the text without decoding it, and checks all values that would become a quantity or a time. It reads tokens,
// because json.Unmarshal decodes all values of a key that occurs twice.
func check(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return (&checker{from: decoder}).next(reflect.TypeOf(into))
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	timeTypes    = []reflect.Type{reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[time.Time]()}
)

// checker reads a text token by token.
type checker struct {
	from   *json.Decoder
	fields map[reflect.Type]map[string]reflect.Type // by type of a struct and folded name: a text may have many keys
}

// next reads one value that is to be decoded into the type; a nil type means that it is not decoded.
func (c *checker) next(t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := c.from.Token()
	if err != nil {
		return unreadable("%v", err)
	}
	switch token := token.(type) {
	case string:
		return checkText(token, t)
	case json.Number:
		return checkText(token.String(), t)
	case json.Delim:
		return c.elements(token, t)
	}
	return nil
}

// elements reads the remaining elements of a list or an object.
func (c *checker) elements(kind json.Delim, t reflect.Type) error {
	for c.from.More() {
		key := ""
		if kind == '{' {
			token, err := c.from.Token()
			if err != nil {
				return unreadable("%v", err)
			}
			key, _ = token.(string)
		}
		if err := c.next(c.elementOf(t, key)); err != nil {
			if kind == '[' {
				return err
			}
			return fmt.Errorf("%s: %w", Cut(key, MaxQuantity), err)
		}
	}
	if _, err := c.from.Token(); err != nil {
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

// elementOf returns the type of an element of a list, map or struct; nil if there is none. A key can match several fields,
// because encoding/json ignores case. The first one is taken; no type of the API has two.
func (c *checker) elementOf(t reflect.Type, key string) reflect.Type {
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return t.Elem()
	case t.Kind() != reflect.Struct:
		return nil
	}
	fields, known := c.fields[t]
	if !known {
		if c.fields == nil {
			c.fields = map[reflect.Type]map[string]reflect.Type{}
		}
		fields = map[string]reflect.Type{}
		addFields(t, fields)
		c.fields[t] = fields
	}
	return fields[fold(key)]
}

// addFields adds the fields of a struct, and of its embedded structs unless they have a name of their own.
func addFields(t reflect.Type, fields map[string]reflect.Type) {
	var embedded []reflect.Type
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			inner := field.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				embedded = append(embedded, inner)
			}
			continue
		}
		if name = fold(cmp.Or(name, field.Name)); fields[name] == nil {
			fields[name] = field.Type
		}
	}
	for _, inner := range embedded { // fields of the outer struct have precedence, as in encoding/json
		addFields(inner, fields)
	}
}

// fold maps all spellings of a key that encoding/json treats as equal to one.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next // the smallest spelling
			}
			r = next
		}
	}, key)
}
