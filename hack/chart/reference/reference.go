// Package reference writes the chart's README.md: README.md.tmpl with a table of all values, from the comments in values.yaml
// and the types in values.schema.json.
package reference

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value is a row of the table.
type Value struct {
	Key, Type, Default, Description string
}

// README returns the text of the chart's README.md.
func README(chart string) (string, error) {
	template, err := os.ReadFile(filepath.Join(chart, "README.md.tmpl"))
	if err != nil {
		return "", err
	}
	values, err := Values(chart)
	if err != nil {
		return "", err
	}
	var table strings.Builder
	table.WriteString("| value | type | default | meaning |\n|---|---|---|---|\n")
	for _, v := range values {
		fmt.Fprintf(&table, "| `%s` | %s | `%s` | %s |\n", v.Key, v.Type, v.Default, v.Description)
	}
	return strings.Replace(string(template), "VALUES\n", table.String(), 1), nil
}

// schema is the part of a JSON schema that says of what type a value is.
type schema struct {
	Type       string            `json:"type"`
	Enum       []any             `json:"enum"`
	OneOf      []schema          `json:"oneOf"`
	Properties map[string]schema `json:"properties"`
}

// Values reads the values of a chart in the order of values.yaml. Each needs a comment that begins with -- and a type in
// the schema, and everything in the schema a default.
func Values(chart string) ([]Value, error) {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read values.yaml: %w", err)
	}
	types, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		return nil, err
	}
	var root schema
	if err := json.Unmarshal(types, &root); err != nil {
		return nil, fmt.Errorf("read values.schema.json: %w", err)
	}
	delete(root.Properties, "global") // Helm's own
	return walk("", document.Content[0], root)
}

func walk(prefix string, node *yaml.Node, types schema) ([]Value, error) {
	var values []Value
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		key := prefix + name.Value
		kind, known := types.Properties[name.Value]
		if !known {
			return nil, fmt.Errorf("value %s is not in values.schema.json", key)
		}
		delete(types.Properties, name.Value)
		description, described := strings.CutPrefix(comment(name.HeadComment), "-- ")
		if !described {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				return nil, fmt.Errorf("value %s has no comment that begins with --", key)
			}
			below, err := walk(key+".", value, kind)
			if err != nil {
				return nil, err
			}
			values = append(values, below...)
			continue
		}
		var content any
		if err := value.Decode(&content); err != nil {
			return nil, fmt.Errorf("value %s: %w", key, err)
		}
		shown, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("value %s: %w", key, err)
		}
		values = append(values, Value{Key: key, Type: kind.name(), Default: string(shown), Description: description})
	}
	for name := range types.Properties {
		return nil, fmt.Errorf("%s%s of values.schema.json is not in values.yaml", prefix, name)
	}
	return values, nil
}

// comment joins the lines of a comment, from the one that begins with --.
func comment(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if strings.HasPrefix(line, "--") {
			words = nil
		}
		words = append(words, line)
	}
	return strings.Join(words, " ")
}

func (s schema) name() string {
	switch {
	case len(s.OneOf) > 0:
		names := make([]string, len(s.OneOf))
		for i, one := range s.OneOf {
			names[i] = one.name()
		}
		return strings.Join(names, " or ")
	case len(s.Enum) > 0:
		names := make([]string, len(s.Enum))
		for i, one := range s.Enum {
			names[i] = fmt.Sprintf("`%v`", one)
		}
		return strings.Join(names, ", ")
	}
	return s.Type
}
