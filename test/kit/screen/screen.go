package screen

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Screen is what a terminal shows, and what has scrolled out of it.
type Screen struct {
	columns, height int
	lines           [][]rune // of all that was written
	top             int      // the first line of the screen
	row, column     int      // the cursor
	unread          string   // of what has not ended
}

// Lines are those on the screen, without those at its end that are empty, and without spaces at their ends.
func (s *Screen) Lines() []string { return text(s.lines[min(s.top, len(s.lines)):]) }

// Scrolled are the lines that have left the screen at its top.
func (s *Screen) Scrolled() []string { return text(s.lines[:min(s.top, len(s.lines))]) }

func text(lines [][]rune) []string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = strings.TrimRight(string(line), " ")
	}
	for len(texts) > 0 && texts[len(texts)-1] == "" {
		texts = texts[:len(texts)-1]
	}
	return texts
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

func (s *Screen) write(text string) {
	text = s.unread + text
	s.unread = ""
	for text != "" {
		size := 1
		switch text[0] {
		case '\r':
			s.column = 0
		case '\n':
			s.down()
		case '\x1b':
			parts := sequence.FindStringSubmatch(text)
			if parts == nil {
				s.unread = text
				return
			}
			s.escape(parts[1], parts[2])
			size = len(parts[0])
		default:
			if !utf8.FullRuneInString(text) {
				s.unread = text
				return
			}
			var r rune
			r, size = utf8.DecodeRuneInString(text)
			s.put(r)
		}
		text = text[size:]
	}
}

// put writes a character. After the last column the next one is the first of the next line.
func (s *Screen) put(r rune) {
	if s.column == s.columns {
		s.column = 0
		s.down()
	}
	line := s.line()
	for len(*line) <= s.column {
		*line = append(*line, ' ')
	}
	(*line)[s.column] = r
	s.column++
}

// line is the line of the cursor.
func (s *Screen) line() *[]rune {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[s.row]
}

// down moves the cursor down, and the lines up if it was in the last one.
func (s *Screen) down() {
	s.row++
	s.top = max(s.top, s.row-s.height+1)
}

func (s *Screen) escape(number, letter string) {
	switch letter {
	case "A": // up, not out of the screen
		up := 1
		_, _ = fmt.Sscan(number, &up) // none is 1
		s.row = max(s.top, s.row-up)
	case "J": // clear what follows on the screen
		s.clearLine()
		for i := s.row + 1; i < len(s.lines); i++ {
			s.lines[i] = nil
		}
	case "K":
		s.clearLine()
	case "m": // colours
	default:
		for _, r := range "<" + number + letter + ">" {
			s.put(r)
		}
	}
}

// clearLine clears the line from the cursor on.
func (s *Screen) clearLine() {
	line := s.line()
	*line = (*line)[:min(s.column, len(*line))]
}
