package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is the whole configuration.
type File struct {
	Plugins []Plugin `yaml:"plugins"`
	// RestartPolicy says whether a plugin that has ended is started again: Always (the default), OnFailure, Never.
	RestartPolicy string `yaml:"restartPolicy" enum:"Always,OnFailure,Never"`
	// Resources limits this program: CPU bounds the processors it uses at once, Memory its heap. Requests and limits of the
	// container are set in the pod.
	Resources map[string]string `yaml:"resources"`
	// SidecarStartOrder: Before starts plugins at once, After when the pod's other containers have started.
	SidecarStartOrder string `yaml:"sidecarStartOrder" enum:"Before,After"`
	// Server is the endpoint for calls to the plugins.
	Server Server `yaml:"server"`
	// Health is the address of /healthz, /readyz and /metrics, such as ":8080"; "off" disables them.
	Health string `yaml:"health"`
	// SelfTestCondition is the type of the pod condition with the result of the self-test; empty sets none.
	SelfTestCondition string `yaml:"selfTestCondition"`
	// ProcRoot is the proc file system; /proc by default.
	ProcRoot string `yaml:"procRoot"`
}

// Server is the endpoint of /hot-update, /status and so on.
type Server struct {
	// Address is 127.0.0.1:5000 by default. An address that others can reach needs a token or client certificates.
	Address string `yaml:"address"`
	// TokenFile is a file with the bearer token that callers must send. It is read at each request, because it may change.
	TokenFile string `yaml:"tokenFile"`
	TLS       TLS    `yaml:"tls"`
}

// TLS is the TLS configuration of the server. The files are read again when they change.
type TLS struct {
	CertFile     string `yaml:"certFile"`
	KeyFile      string `yaml:"keyFile"`
	ClientCAFile string `yaml:"clientCAFile"`
}

// Plugin is one entry of the list of plugins.
type Plugin struct {
	Name string `yaml:"name"`
	// BootOrder is the order of the start: lower ones start first. It is also read inside config.
	BootOrder int `yaml:"bootOrder"`
	// Config is a pointer to the plugin's own type.
	Config any `yaml:"-"`
	// Line is the line in the file; the text is what Config was read from, with templates filled in.
	Line int    `yaml:"-"`
	Text string `yaml:"-"`
	// Awaits are the missing values of the pod in Config, as errors, because the pod has not been read; nil if none is
	// missing.
	Awaits error `yaml:"-"`
}

// Types returns, by name of a known plugin, a function that returns a pointer to a new configuration.
type Types map[string]func() any

// Validator is a plugin's configuration that can check itself.
type Validator interface {
	// Validate returns all errors at once.
	Validate() error
}

// Awaits returns the missing values of the pod of all plugins; nil if none is missing.
func (f *File) Awaits() error {
	var all []error
	for _, p := range f.Plugins {
		all = append(all, p.Awaits)
	}
	return errors.Join(all...)
}

// Parse reads a configuration file, or a ConfigMap manifest that contains one, and returns all errors at once. The name is
// for messages. Values of the pod that a plugin lacks because the pod has not been read are no error, see Plugin.Awaits.
func Parse(name string, text []byte, types Types, lookup Lookup) (*File, error) {
	source := newSource(name, text)
	root, err := source.document()
	if err != nil {
		return nil, err
	}
	if inner, ok := configMap(root, source); ok {
		return parseInner(inner, types, lookup)
	}
	return source.file(root, types, lookup)
}

func parseInner(inner *source, types Types, lookup Lookup) (*File, error) {
	root, err := inner.document()
	if err != nil {
		return nil, err
	}
	return inner.file(root, types, lookup)
}

// document returns the only YAML document.
func (s *source) document() (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(s.text))
	var root, more yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: empty", s.name)
	case err != nil:
		return nil, s.syntax(err)
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, s.errorAt(more.Line, "one document is wanted, another begins here")
	case !errors.Is(err, io.EOF):
		return nil, s.syntax(err)
	}
	return root.Content[0], nil
}

// configMap returns the configuration in a ConfigMap manifest.
func configMap(root *yaml.Node, s *source) (*source, bool) {
	if value := child(root, "kind"); value == nil || value.Value != "ConfigMap" {
		return nil, false
	}
	data := child(root, "data")
	if data == nil || data.Kind != yaml.MappingNode {
		return nil, false
	}
	for i := 0; i+1 < len(data.Content); i += 2 {
		key, value := data.Content[i], data.Content[i+1]
		if !strings.HasSuffix(key.Value, ".yaml") && !strings.HasSuffix(key.Value, ".yml") {
			continue
		}
		inner := newSource(s.name, []byte(value.Value))
		if value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			inner.offset = value.Line // the text begins in the line after the key
		}
		return inner, true
	}
	return nil, false
}

func child(node *yaml.Node, key string) *yaml.Node {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func (s *source) file(root *yaml.Node, types Types, lookup Lookup) (*File, error) {
	w := &walker{source: s, lookup: lookup}
	file := &File{}
	w.decode(root, file)
	w.errs, w.awaited = append(w.errs, w.awaited...), nil // only plugins can wait
	open := w.open
	if list := child(root, "plugins"); list != nil && list.Kind == yaml.SequenceNode {
		for i := range file.Plugins {
			if i < len(list.Content) {
				w.plugin(list.Content[i], &file.Plugins[i], types)
			}
		}
	}
	seen := map[string]int{}
	for _, p := range file.Plugins {
		if line, ok := seen[p.Name]; ok && p.Name != "" {
			w.addErrorAt(p.Line, "plugin %s is listed in line %d already", p.Name, line)
		}
		seen[p.Name] = p.Line
	}
	if err := file.Validate(); err != nil && !open {
		w.errs = append(w.errs, fmt.Errorf("%s: %w", s.name, err))
	}
	return file, errors.Join(w.errs...)
}

// plugin reads a plugin's own configuration.
func (w *walker) plugin(node *yaml.Node, p *Plugin, types Types) {
	p.Line = node.Line + w.source.offset
	newConfig, known := types[p.Name]
	if !known {
		w.addError(node, "unknown plugin %q%s", p.Name, suggest(p.Name, slices.Sorted(maps.Keys(types))))
		return
	}
	p.Config = newConfig()
	config := child(node, "config")
	if config == nil {
		config = &yaml.Node{Kind: yaml.MappingNode, Line: node.Line}
	}
	// The KEP has bootOrder among the plugin's own keys.
	if config.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(config.Content); i += 2 {
			if strings.EqualFold(config.Content[i].Value, "bootOrder") {
				if err := config.Content[i+1].Decode(&p.BootOrder); err != nil {
					w.addError(config.Content[i+1], "bootOrder: want a number")
				}
				config.Content = slices.Delete(config.Content, i, i+2)
				break
			}
		}
	}
	before := len(w.errs)
	w.open = false
	w.decode(config, p.Config)
	p.Awaits, w.awaited = WithoutText(errors.Join(w.awaited...)), nil
	if text, err := yaml.Marshal(config); err == nil {
		p.Text = string(text)
	}
	if v, ok := p.Config.(Validator); ok && len(w.errs) == before && !w.open {
		if err := v.Validate(); err != nil {
			w.addError(node, "plugin %s: %v", p.Name, err)
		}
	}
}
