package screen_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/test/kit/screen"
)

func TestScreen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text            string
		lines, scrolled []string
	}{
		"nothing":              {"", []string{}, []string{}},
		"lines":                {"one\ntwo", []string{"one", "two"}, []string{}},
		"a long line wraps":    {"123456789", []string{"12345678", "9"}, []string{}},
		"a full one does not":  {"12345678\n9", []string{"12345678", "9"}, []string{}},
		"scrolled out":         {"1\n2\n3\n4\n5", []string{"3", "4", "5"}, []string{"1", "2"}},
		"overwritten":          {"abc\rX", []string{"Xbc"}, []string{}},
		"line cleared":         {"abc\r\x1b[Kx", []string{"x"}, []string{}},
		"rest cleared":         {"1\n2\n3\x1b[2A\r\x1b[Jx", []string{"x"}, []string{}},
		"not above the screen": {"1\n2\n3\n4\x1b[9A\r\x1b[Jx", []string{"x"}, []string{"1"}},
		"colours":              {"\x1b[31mred\x1b[0m…", []string{"red…"}, []string{}},
		"unknown sequence":     {"\x1b[2Xa", []string{"<2X>a"}, []string{}},
		"another kind":         {"\x1b]0a", []string{"<ESC>]0a"}, []string{}},
		"tabs":                 {"a\rb\tc", []string{"b      c"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terminal := screen.Open(t, 8, 3)
			if _, err := fmt.Fprint(terminal.File, tt.text); err != nil {
				t.Fatal(err)
			}
			shown := terminal.Close()
			if diff := cmp.Diff(tt.lines, shown.Lines()); diff != "" {
				t.Errorf("on the screen (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.scrolled, shown.Scrolled()); diff != "" {
				t.Errorf("scrolled out (-want +got):\n%s", diff)
			}
		})
	}
}

// Colours end with their code, also over the ends of lines, and a text may be written in any parts.
func TestStyles(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[31mr\x1b[1mé\x1b[0m b \x1b[22;33mc\x1b[39m d\r\ne\x1b[1;38mf\r\n\x1b[32m \x1b[mg"
	want := [][]screen.Span{
		{{Text: "a"}, {Text: "r", Style: screen.Style{Colour: 31}}, {Text: "é", Style: screen.Style{Colour: 31, Bold: true}}, {Text: " b "}, {Text: "c", Style: screen.Style{Colour: 33}}, {Text: " d"}},
		{{Text: "e"}, {Text: "f", Style: screen.Style{Bold: true}}},
		{{Text: " ", Style: screen.Style{Bold: true, Colour: 32}}, {Text: "g"}},
	}
	for size := 1; size <= len(text); size++ {
		shown := screen.New(80, 2)
		for part := range slices.Chunk([]byte(text), size) {
			shown.WriteString(string(part))
		}
		if diff := cmp.Diff(want, shown.Styled()); diff != "" {
			t.Fatalf("in parts of %d bytes (-want +got):\n%s", size, diff)
		}
		if shown.Top() != 1 {
			t.Fatalf("%d lines have left the screen", shown.Top())
		}
	}
}
