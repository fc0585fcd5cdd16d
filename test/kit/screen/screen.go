package screen

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Screen is what a terminal shows, and what has scrolled out of it.
type Screen struct {
	columns, height int
	lines           [][]cell // of all that was written
	top             int      // the first line of the screen
	row, column     int      // the cursor
	style           Style    // of what is written next
	unread          string   // of what has not ended
}

// Style is how characters look.
type Style struct {
	// Colour is an SGR code from 30, black, to 37, white; 0 is the colour of the terminal.
	Colour int
	Bold   bool
}

// Span is a part of a line with one style.
type Span struct {
	Text string
	Style
}

type cell struct {
	character rune
	style     Style
}

// New returns an empty screen of a number of columns and lines.
func New(columns, lines int) *Screen { return &Screen{columns: columns, height: lines} }

// Lines are those on the screen, without those at its end that are empty, and without spaces at their ends.
func (s *Screen) Lines() []string { return text(s.lines[min(s.top, len(s.lines)):]) }

// Scrolled are the lines that have left the screen at its top.
func (s *Screen) Scrolled() []string { return text(s.lines[:s.Top()]) }

// Top is the number of lines that have left the screen at its top.
func (s *Screen) Top() int { return min(s.top, len(s.lines)) }

// Styled are all lines, also those that have left the screen, without spaces at their ends.
func (s *Screen) Styled() [][]Span {
	lines := make([][]Span, len(s.lines))
	for i, line := range s.lines {
		lines[i] = spans(line)
	}
	return lines
}

func spans(line []cell) (parts []Span) {
	length := len(line)
	for length > 0 && line[length-1].character == ' ' {
		length--
	}
	for _, c := range line[:length] {
		if last := len(parts) - 1; last >= 0 && parts[last].Style == c.style {
			parts[last].Text += string(c.character)
		} else {
			parts = append(parts, Span{Text: string(c.character), Style: c.style})
		}
	}
	return parts
}

func text(lines [][]cell) []string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		for _, part := range spans(line) {
			texts[i] += part.Text
		}
	}
	for len(texts) > 0 && texts[len(texts)-1] == "" {
		texts = texts[:len(texts)-1]
	}
	return texts
}

var (
	sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)
	begun    = regexp.MustCompile(`^\x1b(\[[0-9;]*)?$`) // may become a sequence
)

const tabWidth = 8

// WriteString writes what a program has written to the terminal. Text may end within a character or a sequence.
func (s *Screen) WriteString(text string) {
	text = s.unread + text
	s.unread = ""
	for text != "" {
		size := 1
		switch text[0] {
		case '\r':
			s.column = 0
		case '\n':
			s.down()
		case '\t':
			s.column = min(s.column/tabWidth*tabWidth+tabWidth, s.columns-1)
		case '\x1b':
			if begun.MatchString(text) {
				s.unread = text
				return
			}
			size = s.sequence(text)
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

// sequence does what the sequence at the beginning of a text means, and returns its length.
func (s *Screen) sequence(text string) int {
	parts := sequence.FindStringSubmatch(text)
	if parts == nil { // not of this kind; what follows is shown as text
		s.puts("<ESC>")
		return 1
	}
	s.escape(parts[1], parts[2])
	return len(parts[0])
}

// put writes a character. After the last column the next one is the first of the next line.
func (s *Screen) put(r rune) {
	if s.column == s.columns {
		s.column = 0
		s.down()
	}
	line := s.line()
	for len(*line) <= s.column {
		*line = append(*line, cell{character: ' '})
	}
	(*line)[s.column] = cell{r, s.style}
	s.column++
}

func (s *Screen) puts(text string) {
	for _, r := range text {
		s.put(r)
	}
}

// line is the line of the cursor.
func (s *Screen) line() *[]cell {
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
	case "m":
		s.paint(number)
	default:
		s.puts("<" + number + letter + ">")
	}
}

// Codes of SGR, "select graphic rendition".
const (
	sgrReset         = 0
	sgrBold          = 1
	sgrNotBold       = 22
	sgrBlack         = 30
	sgrWhite         = 37
	sgrDefaultColour = 39
)

// paint sets the style of what is written next. Codes that are not known here change nothing.
func (s *Screen) paint(codes string) {
	for code := range strings.SplitSeq(codes, ";") {
		number, err := strconv.Atoi(code)
		switch {
		case code == "" || err == nil && number == sgrReset:
			s.style = Style{}
		case err != nil:
		case number == sgrBold || number == sgrNotBold:
			s.style.Bold = number == sgrBold
		case number >= sgrBlack && number <= sgrWhite:
			s.style.Colour = number
		case number == sgrDefaultColour:
			s.style.Colour = 0
		}
	}
}

// clearLine clears the line from the cursor on.
func (s *Screen) clearLine() {
	line := s.line()
	*line = (*line)[:min(s.column, len(*line))]
}
