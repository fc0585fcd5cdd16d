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

// fault is an error about a line, which it shows.
func (s *source) fault(line int, message string) error {
	text := ""
	if line >= 1 && line <= len(s.lines) {
		text = "\n    " + strings.TrimRight(s.lines[line-1], "\r\n ")
	}
	return fmt.Errorf("%s:%d: %s%s", s.name, line+s.offset, message, text)
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
	fmt.Fprintf(&b, "%s:%d: not YAML: %s", s.name, line+s.offset, message)
	for n := max(line-1, 1); n <= min(line+1, len(s.lines)); n++ {
		mark := " "
		if n == line {
			mark = ">"
		}
		fmt.Fprintf(&b, "\n  %s %4d | %s", mark, n+s.offset, strings.TrimRight(s.lines[n-1], "\r\n "))
	}
	return errors.New(b.String())
}
