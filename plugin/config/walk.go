package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth is deeper than any configuration, and bounds the expansion of aliases in a small file.
const maxDepth = 30

// walker walks a document along its Go type: it finds what the YAML library would ignore, spells keys as the type does, and
// fills in templates. The library does the rest.
type walker struct {
	source *source
	lookup Lookup
	errs   []error
	// awaited are errors that go away when the pod has been read.
	awaited []error
	// open means that an expression was left unchanged, so that its value cannot be checked.
	open bool
}

func (w *walker) addError(node *yaml.Node, format string, args ...any) {
	w.errs = append(w.errs, w.source.errorAt(node.Line, fmt.Sprintf(format, args...)))
}

func (w *walker) addErrorAt(line int, format string, args ...any) {
	w.errs = append(w.errs, w.source.errorAt(line-w.source.offset, fmt.Sprintf(format, args...)))
}

// decode fills the struct that into points to.
func (w *walker) decode(node *yaml.Node, into any) {
	before := len(w.errs)
	w.walk(node, reflect.TypeOf(into).Elem(), 0)
	if len(w.errs) > before && node.Kind != yaml.MappingNode {
		return
	}
	var typeErr *yaml.TypeError
	switch err := node.Decode(into); {
	case errors.As(err, &typeErr):
		for _, message := range typeErr.Errors {
			w.addTypeError(message)
		}
	case err != nil:
		w.errs = append(w.errs, w.source.syntax(err))
	}
}

// addTypeError parses a message of the YAML library, "line 3: cannot unmarshal !!str `x` into int".
func (w *walker) addTypeError(message string) {
	at, what, _ := strings.Cut(strings.TrimPrefix(message, "line "), ": ")
	line, err := strconv.Atoi(at)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("%s: %s", w.source.name, message))
		return
	}
	if value, kind, ok := strings.Cut(strings.TrimPrefix(what, "cannot unmarshal "), " into "); ok {
		what = fmt.Sprintf("wrong type: %s is given, %s is wanted", value, plain(kind))
	}
	w.errs = append(w.errs, w.source.errorAt(line, what))
}

func plain(kind string) string {
	switch {
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	case strings.HasPrefix(kind, "map["), strings.Contains(kind, "."):
		return "a mapping"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), strings.HasPrefix(kind, "float"):
		return "a number (" + kind + ")"
	}
	return kind
}

func (w *walker) walk(node *yaml.Node, t reflect.Type, depth int) {
	if depth > maxDepth {
		w.addError(node, "nested too deeply")
		return
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case node.Kind == yaml.ScalarNode:
		w.scalar(node, t)
	case t.Kind() == reflect.Struct && node.Kind == yaml.MappingNode:
		w.mapping(node, t, depth)
	case node.Kind == yaml.MappingNode:
		element := t
		if t.Kind() == reflect.Map {
			element = t.Elem()
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			w.scalar(node.Content[i], reflect.TypeFor[string]())
			w.walk(node.Content[i+1], element, depth+1)
		}
	case node.Kind == yaml.SequenceNode:
		element := t
		if t.Kind() == reflect.Slice {
			element = t.Elem()
		}
		for _, item := range node.Content {
			w.walk(item, element, depth+1)
		}
	}
}

// scalar fills in templates. If the value is not of type string, the filled-in text determines the value, for example a
// number.
func (w *walker) scalar(node *yaml.Node, t reflect.Type) {
	if !strings.Contains(node.Value, "${") {
		return
	}
	value, err := expand(node.Value, w.lookup)
	switch {
	case errors.Is(err, ErrPodNotRead):
		w.awaited = append(w.awaited, w.source.errorAt(node.Line, err.Error()))
		value = node.Value
	case err != nil:
		w.addError(node, "%v", err)
		return
	}
	w.open = w.open || expression.MatchString(value)
	if node.Style == 0 && t.Kind() != reflect.String && t.Kind() != reflect.Interface {
		node.Tag = ""
		if value == node.Value { // left unchanged without a pod: any value of the type is allowed
			value = map[bool]string{true: "false", false: "0"}[t.Kind() == reflect.Bool]
		}
	}
	node.Value = value
}

// mapping spells the keys of a struct as its type does and reports unknown keys.
func (w *walker) mapping(node *yaml.Node, t reflect.Type, depth int) {
	known := fields(t)
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == "<<" {
			w.walk(value, t, depth+1)
			continue
		}
		field, ok := known[strings.ToLower(key.Value)]
		if !ok {
			names := make([]string, 0, len(known))
			for _, f := range known {
				names = append(names, f.name)
			}
			slices.Sort(names)
			w.addError(key, "unknown key %q%s", key.Value, suggest(key.Value, slices.Compact(names)))
			continue
		}
		if line, ok := seen[field.name]; ok {
			w.addError(key, "key %q is given in line %d already", field.name, line+w.source.offset)
			continue
		}
		seen[field.name] = key.Line
		key.Value = field.name
		if field.kind == nil { // a plugin's own key, which plugin reads
			continue
		}
		if field.single && value.Kind == yaml.MappingNode {
			inner := *value
			*value = yaml.Node{Kind: yaml.SequenceNode, Line: inner.Line, Column: inner.Column, Content: []*yaml.Node{&inner}}
		}
		w.walk(value, field.kind, depth+1)
		if value.Kind == yaml.ScalarNode && len(field.enum) > 0 && !slices.Contains(field.enum, value.Value) && !expression.MatchString(value.Value) {
			w.addError(value, "%s: %q is given, want one of %s", field.name, value.Value, strings.Join(field.enum, ", "))
		}
	}
}

// field is a key of a type.
type field struct {
	name   string
	kind   reflect.Type
	single bool // a list that may be given as its only element
	enum   []string
}

// fields returns the keys of a struct by their names and aliases, in lower case.
func fields(t reflect.Type) map[string]field {
	all := map[string]field{}
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			for key, inner := range fields(f.Type) {
				all[key] = inner
			}
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		this := field{name: name, kind: f.Type, single: f.Tag.Get("single") == "true"}
		if enum := f.Tag.Get("enum"); enum != "" {
			this.enum = strings.Split(enum, ",")
		}
		all[strings.ToLower(name)] = this
		if alias := f.Tag.Get("alias"); alias != "" {
			all[strings.ToLower(alias)] = this
		}
	}
	if t == reflect.TypeFor[Plugin]() {
		all["config"] = field{name: "config"}
	}
	return all
}
