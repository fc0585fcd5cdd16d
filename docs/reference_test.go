package docs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// generated compares a page with its sources, and writes it with -update.
func generated(t *testing.T, page, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("go test ./docs -run %s -update (-sources +file):\n%s", t.Name(), diff)
	}
}

// parsed are the files of a package, without tests.
func parsed(t *testing.T, folder string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sources in %s: %v", folder, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// cell returns a comment as a cell of a table, without the name at its beginning.
func cell(comment, name string) string {
	comment = strings.ReplaceAll(strings.Join(strings.Fields(comment), " "), "|", `\|`)
	rest, ok := strings.CutPrefix(comment, name+" ")
	if !ok {
		return comment
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
	return strings.TrimSuffix(strings.ToUpper(rest[:1])+rest[1:], ".")
}

// Keys are the labels, annotations and finalizers that Refit reads or writes: the constants of the API packages, and what the
// sidecar reads of a ConfigMap.
func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	type key struct{ name, kind, meaning string }
	var keys []key
	for _, folder := range []string{"api/v1beta1", "api/refit/v1alpha1", "hotupdate/inpod/trigger"} {
		for _, file := range parsed(t, folder) {
			for _, declaration := range file.Decls {
				group, ok := declaration.(*ast.GenDecl)
				if !ok || group.Tok != token.CONST {
					continue
				}
				for _, spec := range group.Specs {
					constant := spec.(*ast.ValueSpec)
					if len(constant.Values) != 1 {
						continue
					}
					value, name := text(constant.Values[0]), constant.Names[0].Name
					if !strings.Contains(value, "refit.dev/") && !strings.Contains(value, "kruise.io/") {
						continue
					}
					comment := cmp.Or(constant.Doc.Text(), constant.Comment.Text(), group.Doc.Text())
					if comment == "" {
						t.Errorf("%s: constant %s has no comment", folder, name)
					}
					keys = append(keys, key{value, kindOfKey(name), cell(comment, name)})
				}
			}
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind)) })
	if len(keys) < 30 {
		t.Errorf("only %d keys", len(keys))
	}
	page := "# Labels, annotations and finalizers\n\n<!-- made from api/: go test ./docs -run TestKeysAreDocumented -update -->\n\n" +
		"Keys that end in `.` or `/` are followed by a name, such as the name of a container. For their use in a request see [requests.md](../requests.md#fields).\n\n" +
		"| key | kind | meaning |\n|---|---|---|\n"
	for _, k := range keys {
		page += fmt.Sprintf("| `%s` | %s | %s |\n", k.name, k.kind, k.meaning)
	}
	generated(t, "reference/annotations.md", page)
}

func kindOfKey(constant string) string {
	for _, kind := range []string{"Label", "Finalizer", "Condition"} {
		if strings.HasPrefix(constant, kind) {
			return strings.ToLower(kind)
		}
	}
	return "annotation"
}

// configTypes are the folders with the Go types that the configuration of the sidecar is read into.
var configTypes = map[string]string{
	"config": "plugin/config", "endpoint": "probe/endpoint", "process": "internal/process",
	"download": "hotupdate/inpod/download", "steps": "hotupdate/inpod/steps", "trigger": "hotupdate/inpod/trigger", "inpod": "hotupdate/inpod",
}

// schemaType is what is used of a JSON schema.
type schemaType struct {
	Ref        string                `json:"$ref"`
	Type       any                   `json:"type"`
	Enum       []any                 `json:"enum"`
	AnyOf      []schemaType          `json:"anyOf"`
	Items      *schemaType           `json:"items"`
	Properties map[string]schemaType `json:"properties"`
	Defs       map[string]schemaType `json:"$defs"`
}

// String is the type in words, with a link if it has a section of its own.
func (s schemaType) String() string {
	switch {
	case strings.Contains(s.Ref, "."):
		name := strings.TrimPrefix(s.Ref, "#/$defs/")
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(strings.ReplaceAll(name, ".", "")))
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/$defs/")
	case len(s.AnyOf) > 0:
		var all []string
		for _, one := range s.AnyOf {
			all = append(all, one.String())
		}
		return strings.Join(all, ", or ")
	case len(s.Enum) > 0:
		return fmt.Sprintf("one of %v", s.Enum)
	case s.Items != nil:
		return "list of " + s.Items.String()
	}
	if s.Type == nil {
		return "any"
	}
	types, _ := json.Marshal(s.Type)
	return strings.Trim(strings.ReplaceAll(strings.ReplaceAll(string(types), `,"null"`, ""), `"`, ""), "[]")
}

// fields returns the comments of the fields of all types of the configuration, as type.key, and the comments of the types.
func configComments(t *testing.T) map[string]string {
	t.Helper()
	tag := regexp.MustCompile("yaml:\"([A-Za-z]+)")
	comments := map[string]string{}
	for name, folder := range configTypes {
		for _, file := range parsed(t, folder) {
			ast.Inspect(file, func(node ast.Node) bool {
				declaration, ok := node.(*ast.GenDecl)
				if !ok || declaration.Tok != token.TYPE {
					return true
				}
				for _, spec := range declaration.Specs {
					typ := spec.(*ast.TypeSpec)
					structure, ok := typ.Type.(*ast.StructType)
					if !ok {
						continue
					}
					of := name + "." + typ.Name.Name
					comments[of] = strings.Join(strings.Fields(declaration.Doc.Text()), " ")
					for _, field := range structure.Fields.List {
						if field.Tag == nil || len(field.Names) == 0 {
							continue
						}
						if match := tag.FindStringSubmatch(field.Tag.Value); match != nil {
							comments[of+"."+match[1]] = cell(cmp.Or(field.Doc.Text(), field.Comment.Text()), field.Names[0].Name)
						}
					}
				}
				return true
			})
		}
	}
	return comments
}

// The configuration of the sidecar, from its schema, with the comments of the sources.
func TestConfigurationOfTheSidecarIsDocumented(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../deploy/sidecar/config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema schemaType
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	comments := configComments(t)
	page := "# Configuration of refit-sidecar\n\n<!-- made from deploy/sidecar/config.schema.json: go test ./docs -run TestConfigurationOfTheSidecarIsDocumented -update -->\n\n" +
		"The schema is [config.schema.json](../../deploy/sidecar/config.schema.json), for editors and other programs. Keys may be written in any case. " +
		"[sidecar.md](../sidecar.md#configure) explains the configuration with examples.\n\n## File\n\n"
	table := func(of string, properties map[string]schemaType) {
		page += "| key | type | meaning |\n|---|---|---|\n"
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			page += fmt.Sprintf("| `%s` | %s | %s |\n", key, properties[key], comments[of+"."+key])
		}
	}
	table("config.File", schema.Properties)
	for _, name := range slices.Sorted(maps.Keys(schema.Defs)) {
		if !strings.Contains(name, ".") || len(schema.Defs[name].Properties) == 0 {
			continue
		}
		page += "\n## " + name + "\n\n"
		if comments[name] != "" {
			page += comments[name] + "\n\n"
		}
		table(name, schema.Defs[name].Properties)
	}
	generated(t, "reference/sidecar-configuration.md", page)
}
