package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is a text with the lines it came from.
type source struct {
	name   string
	text   []byte
	lines  []string
	offset int // lines before it in the file
}

func newSource(name string, text []byte) *source {
	return &source{name: name, text: text, lines: strings.Split(string(text), "\n")}
}

// fault is an error in the file. It shows the lines that it is about.
type fault struct{ message, text string }

func (f *fault) Error() string { return f.message + f.text }

// WithoutText is an error of Parse without lines of the file, which may hold credentials: for logs, Events and answers.
func WithoutText(err error) error {
	switch e := err.(type) { //nolint:errorlint // the tree of errors is walked
	case *fault:
		return errors.New(e.message)
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, WithoutText(one))
		}
		return errors.Join(all...)
	}
	return err
}

// fault is an error about a line, which it shows.
func (s *source) fault(line int, message string) error {
	text := ""
	if line >= 1 && line <= len(s.lines) {
		text = "\n    " + strings.TrimRight(s.lines[line-1], "\r\n ")
	}
	return &fault{message: fmt.Sprintf("%s:%d: %s", s.name, line+s.offset, message), text: text}
}

// maxLines bounds the search for the line of a syntax error, which takes time with the square of it.
const maxLines = 2000

var place = regexp.MustCompile(`^yaml: (?:unmarshal errors:\n)?\s*(?:line \d+: )?`)

// syntax puts the line into an error of the YAML parser and shows it with its neighbours. The parser names where
// the thing began that it could not end, which may be the whole list; we want the first line with which the
// beginning of the text is no longer YAML.
func (s *source) syntax(err error) error {
	message := place.ReplaceAllString(err.Error(), "")
	if len(s.lines) > maxLines {
		return fmt.Errorf("%s: not YAML: %s", s.name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	good := len(s.lines) - 1
	for ; good > 0; good-- {
		var node yaml.Node
		if yaml.Unmarshal([]byte(strings.Join(s.lines[:good], "\n")), &node) == nil {
			break
		}
	}
	line := good + 1
	var b strings.Builder
	for n := max(line-1, 1); n <= min(line+1, len(s.lines)); n++ {
		mark := " "
		if n == line {
			mark = ">"
		}
		fmt.Fprintf(&b, "\n  %s %4d | %s", mark, n+s.offset, strings.TrimRight(s.lines[n-1], "\r\n "))
	}
	return &fault{message: fmt.Sprintf("%s:%d: not YAML: %s", s.name, line+s.offset, message), text: b.String()}
}
