package film

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hack/terminal/cast"
	"github.com/refit-project/refit/test/kit/browser"
)

// visible is the text in the window, by lines.
const visible = `(() => {
	const up = new DOMMatrix(getComputedStyle(document.querySelector('g')).transform).f, height = document.querySelector('svg svg').height.baseVal.value, lines = [];
	for (const t of document.querySelectorAll('text')) {
		const y = Number(t.getAttribute('y')) + up;
		if (getComputedStyle(t).visibility === 'visible' && y > 0 && y < height) lines[Math.floor(y / 18)] = t.textContent;
	}
	return Array.from(lines, (line) => line || '').join('\n');
})()`

// A browser shows at each time what the terminal showed, and the last frame to who wants no motion.
func TestInABrowserTheFilmShowsWhatTheTerminalShowed(t *testing.T) {
	t.Parallel()
	r := &cast.Recording{Title: "A rollout", Columns: 30, Lines: 5}
	add := func(at time.Duration, text string) { r.Events = append(r.Events, cast.Event{At: at, Text: text}) }
	add(0, cast.Prompt+"restart web\r\n")
	for n := range 6 {
		up := "\x1b[3A\r\x1b[J"
		if n == 0 {
			up = ""
		}
		add(time.Duration(n+1)*700*time.Millisecond, fmt.Sprintf("%spod  a  \x1b[33mstopped %d\x1b[0m\r\npod  b\r\n%d s\r\n", up, n/2, n))
	}
	add(time.Minute, cast.Prompt+"get pods\r\na\r\nb\r\n")
	add(61*time.Second, "1\r\n2")
	var picture bytes.Buffer
	if err := Draw(&picture, r); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "film.svg")
	if err := os.WriteFile(file, picture.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t)
	p.Go("file://" + file)
	p.Await("document.querySelector('text') && document.getAnimations().length > 5")
	all := frames(r)
	for _, f := range all {
		p.Eval(fmt.Sprintf("document.getAnimations().forEach((a) => { a.pause(); a.currentTime = %d; })", f.at.Milliseconds()+1))
		if diff := cmp.Diff(f.window(), p.Eval(visible)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", f.at, diff)
		}
	}
	last := all[len(all)-1].window()
	p.Prefers("prefers-reduced-motion", "reduce")
	p.Await("document.getAnimations().length === 0")
	if diff := cmp.Diff(last, p.Eval(visible)); diff != "" {
		t.Errorf("without motion (-want +got):\n%s", diff)
	}
}

// window is what is on the screen.
func (f frame) window() string {
	var lines []string
	for _, line := range f.lines[min(f.top, len(f.lines)):] {
		lines = append(lines, plain(line))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
