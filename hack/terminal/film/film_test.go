package film_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/hack/terminal/cast"
	"github.com/refit-project/refit/hack/terminal/film"
	"github.com/refit-project/refit/test/kit/golden"
)

const ms = time.Millisecond

// hostile has what ends elements, styles and documents, and characters that XML cannot have.
const hostile = "</text></svg><script>alert('&')</script>]]>\x00\x07\x1b]0;x\xff <!--"

func TestFilm(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*cast.Recording{
		"one": {Title: "One", Columns: 20, Lines: 3, Events: []cast.Event{{At: 7 * time.Hour, Text: "hello\r\n"}}},
		"table": {Title: "A table, in place", Columns: 20, Lines: 3, Events: []cast.Event{
			{At: 0, Text: cast.Prompt + "\x1b[1mrestart web\x1b[0m\r\n"},
			{At: 500 * ms, Text: "pod 1  \x1b[33mstop\x1b[0m\r\n"}, {At: 510 * ms, Text: "pod 2\r\n"}, // one frame
			{At: 900 * ms, Text: "\x1b[2A\r\x1b[Jpod 1  \x1b[33mstop\x1b[0m\r\npod 2\r\n"},                               // nothing new
			{At: 61500 * ms, Text: "\x1b[2A\r\x1b[J"}, {At: 61501 * ms, Text: "pod 1  \x1b[32mdone\x1b[0m\r\npod 2\r\n"}, // a minute is a second
			{At: 62000 * ms, Text: cast.Prompt + "ls\r\n"}, {At: 62500 * ms, Text: "a\r\n"},
		}},
		"hostile": {Title: hostile, Columns: 80, Lines: 3, Events: []cast.Event{{Text: "$ " + hostile}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Check(t, filepath.Join("testdata", name+".svg"), drawn(t, r))
		})
	}
}

// drawn is the picture, which is XML of the expected elements only.
func drawn(t *testing.T, r *cast.Recording) string {
	t.Helper()
	var out bytes.Buffer
	if err := film.Draw(&out, r); err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatalf("no XML: %v\n%s", err, out.String())
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !slices.Contains(strings.Fields("svg title desc style rect g text tspan"), token.Name.Local) {
				t.Errorf("element %s", token.Name.Local)
			}
		case xml.Comment, xml.ProcInst, xml.Directive:
			t.Errorf("%v", token)
		}
	}
}

func TestAnEmptyRecordingIsRefused(t *testing.T) {
	t.Parallel()
	if err := film.Draw(io.Discard, &cast.Recording{Columns: 80, Lines: 24}); err == nil {
		t.Error("no error")
	}
}

// The picture of the documents is what its recording shows, and small enough for a page.
func TestThePictureOfTheDocumentsShowsItsRecording(t *testing.T) {
	t.Parallel()
	images := filepath.Join("..", "..", "..", "docs", "images")
	text, err := os.ReadFile(filepath.Join(images, "terminal.cast"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := cast.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	picture := drawn(t, r)
	golden.Check(t, filepath.Join(images, "terminal.svg"), picture)
	const most = 150_000
	if len(picture) > most {
		t.Errorf("the picture has %d bytes", len(picture))
	}
}
