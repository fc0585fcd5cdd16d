package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Schema is a JSON Schema (draft 2020-12) of the configuration file with the given plugins, for editors and
// review. It knows camelCase keys only; Parse is more patient about case, and knows more.
func Schema(types Types) map[string]any {
	schema := schemaOf(reflect.TypeFor[File]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "refit-sidecar configuration"
	schema["required"] = []string{"plugins"}
	plugins := make([]any, 0, len(types))
	for _, name := range slices.Sorted(maps.Keys(types)) {
		plugin := schemaOf(reflect.TypeFor[Plugin]())
		properties, _ := plugin["properties"].(map[string]any)
		properties["name"] = map[string]any{"const": name}
		own := schemaOf(reflect.TypeOf(types[name]()))
		if keys, ok := own["properties"].(map[string]any); ok {
			keys["bootOrder"] = map[string]any{"type": "integer"} // as the KEP has it
		}
		properties["config"] = own
		plugin["required"] = []string{"name"}
		plugins = append(plugins, plugin)
	}
	properties, _ := schema["properties"].(map[string]any)
	properties["plugins"] = map[string]any{"type": "array", "items": map[string]any{"anyOf": plugins}}
	return schema
}

func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		properties := map[string]any{}
		for key, f := range fields(t) {
			if f.kind == nil || key != strings.ToLower(f.name) {
				continue
			}
			properties[f.name] = f.schema()
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String: // the library makes text of any scalar
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": "integer"}
	}
}

func (f field) schema() map[string]any {
	schema := schemaOf(f.kind)
	if len(f.enum) > 0 {
		schema = map[string]any{"enum": f.enum}
	}
	if f.single {
		schema = map[string]any{"anyOf": []any{schema, schemaOf(f.kind.Elem())}}
	}
	return schema
}
