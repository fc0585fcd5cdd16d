package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is a text with its line numbers in the file.
type source struct {
	name   string
	text   []byte
	lines  []string
	offset int // number of lines before it in the file
}

func newSource(name string, text []byte) *source {
	return &source{name: name, text: text, lines: strings.Split(string(text), "\n")}
}

// lineError is an error in the file. Its text shows the lines concerned.
type lineError struct{ message, text string }

func (f *lineError) Error() string { return f.message + f.text }

// WithoutText returns an error of Parse without lines of the file, which may contain credentials, for logs, Events and
// responses.
func WithoutText(err error) error {
	switch e := err.(type) { //nolint:errorlint // the tree of errors is walked
	case *lineError:
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

// errorAt returns an error about a line, and shows the line.
func (s *source) errorAt(line int, message string) error {
	text := ""
	if line >= 1 && line <= len(s.lines) {
		text = "\n    " + strings.TrimRight(s.lines[line-1], "\r\n ")
	}
	return &lineError{message: fmt.Sprintf("%s:%d: %s", s.name, line+s.offset, message), text: text}
}

// maxLines bounds the search for the line of a syntax error, whose time grows with the square of the lines.
const maxLines = 2000

var place = regexp.MustCompile(`^yaml: (?:unmarshal errors:\n)?\s*(?:line \d+: )?`)

// syntax adds the line to an error of the YAML parser and shows it with its neighbours. The parser reports where the
// unfinished element began, which may be the whole list. We want the first line after which the text is no longer valid
// YAML.
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
	return &lineError{message: fmt.Sprintf("%s:%d: not YAML: %s", s.name, line+s.offset, message), text: b.String()}
}
