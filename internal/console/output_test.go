package console_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/test/kit/screen"
)

// What is waited for is one line as long as it lasts, whatever it says, and is there as a whole afterwards.
func TestLongLineThatIsKeptUpToDateLeavesNoCopies(t *testing.T) {
	t.Parallel()
	terminal := screen.Open(t, 40, 24)
	output := console.NewOutput(terminal.File, true)
	output.Wait("container app: CrashLoopBackOff: back-off 5m0s restarting failed container\nof pod web-0")
	for range 3 {
		output.Tick()
	}
	output.Progress("pulling registry.example.com/shop/backend:7: 10 %")
	output.Progress("pulling registry.example.com/shop/backend:7: 20 %")
	output.Tick()
	output.Say("done")
	got := strings.Join(terminal.Close().Lines(), "\n")
	got = regexp.MustCompile(`\[ *[0-9.]+s\]`).ReplaceAllString(got, "[   0.0s]")
	const want = `[   0.0s] container app: CrashLoopBackOf
f: back-off 5m0s restarting failed conta
iner
of pod web-0, for 0 s
[   0.0s] pulling registry.example.com/s
hop/backend:7: 20 %, for 0 s
[   0.0s] done`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("on the screen (-want +got):\n%s", diff)
	}
}

// The lines that are kept up to date never take more than the screen.
func TestRegionShowsItsLastLinesWhereThereIsNoRoomForAll(t *testing.T) {
	t.Parallel()
	terminal := screen.Open(t, 40, 4)
	output := console.NewOutput(terminal.File, true)
	for range 3 {
		output.Region([]string{"one", "two", "three", "four"})
	}
	shown := terminal.Close()
	if diff := cmp.Diff([]string{"two", "three", "four"}, append(shown.Scrolled(), shown.Lines()...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
