package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Schema returns a JSON Schema (draft 2020-12) of the configuration file with the given plugins, for editors and review. It
// accepts what Parse accepts, including keys in any case; properties has the usual spelling, for completion.
func Schema(types Types) map[string]any {
	w := schemaWriter{defs: map[string]any{}}
	schema := maps.Clone(w.object(fields(reflect.TypeFor[File]())))
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "refit-sidecar configuration"
	plugins := make([]any, 0, len(types))
	for _, name := range slices.Sorted(maps.Keys(types)) {
		plugins = append(plugins, w.plugin(name, reflect.TypeOf(types[name]()).Elem()))
	}
	setProperty(schema, "plugins", map[string]any{"type": []string{"array", "null"}, "items": map[string]any{"anyOf": plugins}})
	schema["$defs"] = w.defs
	return schema
}

// plugin returns the schema of an entry of the list of plugins.
func (w *schemaWriter) plugin(name string, config reflect.Type) map[string]any {
	keys := fields(config)
	keys["bootorder"] = field{name: "bootOrder", kind: reflect.TypeFor[int]()} // in the KEP it is one of the plugin's own keys
	own := w.object(keys)
	own["type"] = []string{"object", "null"}
	plugin := w.object(fields(reflect.TypeFor[Plugin]()))
	setProperty(plugin, "name", map[string]any{"const": name})
	setProperty(plugin, "config", own)
	plugin["required"] = []string{"name"}
	return plugin
}

// setProperty replaces the schema of a key in all its spellings.
func setProperty(object map[string]any, name string, schema any) {
	for keyword, key := range map[string]string{"properties": name, "patternProperties": anyCase(name)} {
		if properties, ok := object[keyword].(map[string]any); ok {
			properties[key] = schema
		}
	}
}

// schemaWriter keeps the schemas of structs, which occur several times, as definitions.
type schemaWriter struct{ defs map[string]any }

func (w *schemaWriter) object(keys map[string]field) map[string]any {
	properties, patterns := map[string]any{}, map[string]any{"^<<$": map[string]any{}}
	for key, f := range keys {
		schema := map[string]any{}
		if f.kind != nil {
			schema = w.field(f)
		}
		if key == strings.ToLower(f.name) {
			properties[f.name] = schema
		}
		patterns[anyCase(key)] = schema
	}
	return map[string]any{"type": "object", "properties": properties, "patternProperties": patterns, "additionalProperties": false}
}

// anyCase returns a regular expression that matches a word case-insensitively; JSON Schema has no flag for it.
func anyCase(word string) string {
	var b strings.Builder
	b.WriteByte('^')
	for _, r := range word {
		if unicode.IsLetter(r) {
			b.WriteString("[" + string(unicode.ToLower(r)) + string(unicode.ToUpper(r)) + "]")
		} else {
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteByte('$')
	return b.String()
}

// template returns the schema of a value with an expression, whose type is known only when it is filled in.
func template() map[string]any {
	return map[string]any{"type": "string", "pattern": `\$\{(SELF|POD):[^}]+\}`}
}

func (w *schemaWriter) field(f field) map[string]any {
	schema := w.typed(f.kind)
	if len(f.enum) > 0 {
		schema = map[string]any{"anyOf": []any{map[string]any{"enum": f.enum}, template()}}
	}
	if f.single {
		schema = map[string]any{"anyOf": []any{schema, w.typed(f.kind.Elem())}}
	}
	return schema
}

func (w *schemaWriter) typed(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return w.typed(t.Elem())
	case reflect.Struct:
		name := strings.ReplaceAll(t.String(), "*", "")
		if _, ok := w.defs[name]; !ok {
			w.defs[name] = nil // for recursive types
			object := w.object(fields(t))
			object["type"] = []string{"object", "null"}
			w.defs[name] = object
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": w.typed(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": w.typed(t.Elem())}
	case reflect.Bool:
		words := map[string]any{"enum": []string{"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"}}
		return w.shared("boolean", map[string]any{"anyOf": []any{map[string]any{"type": []string{"boolean", "null"}}, words, template()}})
	case reflect.String: // the library converts any scalar to text
		return w.shared("text", map[string]any{"type": []string{"string", "number", "boolean", "null"}})
	case reflect.Interface:
		return map[string]any{}
	default:
		return w.shared("number", map[string]any{"anyOf": []any{map[string]any{"type": []string{"number", "null"}}, template()}})
	}
}

// shared adds a schema to the definitions and returns a reference to it.
func (w *schemaWriter) shared(name string, schema map[string]any) map[string]any {
	w.defs[name] = schema
	return map[string]any{"$ref": "#/$defs/" + name}
}
