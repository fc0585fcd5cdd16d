package probe

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refit-project/refit/internal/foreign"
)

func FuzzExtract(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}]}`), "{.a[1].b}")
	f.Add([]byte(`[[[]]]`), "{..a[?(@.b>1)]}")
	f.Add([]byte(`{"a":{"b":"c"}}`), "a.b")
	f.Add([]byte(`[1]`), "{range .[*]}{@}{end}")
	f.Fuzz(func(t *testing.T, document []byte, path string) {
		o := result(document, path)
		if o.State == Failed || len(o.Message) > MaxMessage || !utf8.ValidString(o.Message) {
			t.Errorf("%+v", o)
		}
	})
}

func FuzzTidy(f *testing.F) {
	f.Add(" a\xff界\n")
	f.Add(strings.Repeat("界", 400))
	f.Fuzz(func(t *testing.T, s string) {
		got := cleanMessage(s)
		if len(got) > MaxMessage || !utf8.ValidString(got) || (len(s) <= 300 && utf8.ValidString(s) && got != strings.TrimSpace(foreign.PrintableLines(s))) {
			t.Errorf("cleanMessage(%q) = %q", s, got)
		}
	})
}
