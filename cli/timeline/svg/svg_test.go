package svg_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/refit-project/refit/cli/timeline/svg"
	"github.com/refit-project/refit/test/kit/golden"
)

func TestPicture(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var out bytes.Buffer
	err := svg.Draw(&out, svg.Picture{Title: "One & two", Panels: []svg.Panel{
		{
			Title: "Restarted in place", Note: "app down for 900ms",
			Bars: []svg.Bar{
				{Lane: "app", Label: "<web>", State: svg.StateBefore, End: 100 * ms},
				{Lane: "app", Label: "<web>", State: svg.StateStopping, Start: 100 * ms, End: 300 * ms},
				{Lane: "app", Label: "<web>", State: svg.StateAfter, Start: 1000 * ms},
				{Lane: "log", Label: "web", State: svg.StateBefore},
			},
			Marks: []svg.Mark{{At: 1400 * ms, Label: "ready after 1.4 s"}},
		},
		{Title: "Deleted", Bars: []svg.Bar{{Lane: "app", State: svg.StateBefore, End: 2500 * ms}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v\n%s", err, out.String())
		}
	}
	golden.Check(t, filepath.Join("testdata", "picture.svg"), out.String())
}

// The longest of a rollout's lanes and times stay legible. Times of centuries come from Events that others have written.
func TestAxisHasFewTicks(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{0, time.Second, 20 * time.Second, 10 * time.Minute, 9 * time.Hour, 289 * 8766 * time.Hour, math.MaxInt64} {
		var out bytes.Buffer
		if err := svg.Draw(&out, svg.Picture{Panels: []svg.Panel{{Bars: []svg.Bar{{Lane: "a-pod-with-a-rather-long-name-5d9c7b8f4-x2x7k/app", End: length}}}}}); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(out.Bytes(), []byte("#e4e7eb")); n < 1 || n > 13 {
			t.Errorf("%s: %d ticks", length, n)
		}
	}
}
