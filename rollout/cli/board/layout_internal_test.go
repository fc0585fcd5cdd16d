package board

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
)

// restarts are a pod of a Deployment that has been restarted and one whose restart has failed, with the long names of real ones.
func restarts() *Board {
	b := New()
	for i, pod := range []string{"shop-backend-97fb7f697-6fjgl", "shop-backend-97fb7f697-x2x7k"} {
		r := requestOf(pod, v1beta1.ContainerRecreateRequestPending, "containerd://0123456789abcdef")
		r.Spec.Containers[0].StatusContext.ContainerID = "containerd://0123456789abcdef"
		b.Request(r, after(0))
		b.Request(r, after(0.2))
		b.Pod(podOf(pod, "fedcba9876543210"), after(1.4))
		outcome := crr.Outcome{}
		if i == 1 {
			outcome = crr.Outcome{Reason: crr.ReasonRestartNotReported}
		}
		crr.Complete(&r.Status, outcome, 1, after(12.5))
		b.Request(r, after(12.5))
	}
	return b
}

// What matters least is left out first, where the terminal is narrow; what is left is never longer than it.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]string{
		119: `POD                           CONTAINER  OLD           NEW           TERM    START   READY   STATE
shop-backend-97fb7f697-6fjgl  app        0123456789ab  fedcba987654  0.2s    1.4s    12.5s   restarted
shop-backend-97fb7f697-x2x7k  app        0123456789ab  fedcba987654  0.2s    1.4s    -       failed: RestartNotReported
`,
		79: `POD                           CONTAINER  TERM    START   READY   STATE
shop-backend-97fb7f697-6fjgl  app        0.2s    1.4s    12.5s   restarted
shop-backend-97fb7f697-x2x7k  app        0.2s    1.4s    -       failed: Resta…
`,
		65: `POD                 CONTAINER  TERM    START   READY   STATE
…d-97fb7f697-6fjgl  app        0.2s    1.4s    12.5s   restarted
…d-97fb7f697-x2x7k  app        0.2s    1.4s    -       failed: R…
`,
		50: `POD               CONTAINER  READY   STATE
…97fb7f697-6fjgl  app        12.5s   restarted
…97fb7f697-x2x7k  app        -       failed: Rest…
`,
		30: `POD               CONTAINER  …
…97fb7f697-6fjgl  app        …
…97fb7f697-x2x7k  app        …
`,
	} {
		lines := restarts().Lines(false, columns, 23)
		got := ""
		for _, line := range lines {
			if utf8.RuneCountInString(line) > columns {
				t.Errorf("%d columns: %q is longer", columns, line)
			}
			got += strings.TrimRight(line, " ") + "\n"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", columns, diff)
		}
	}
}

// The reason of a failure and the ID of an instance are text of an object's status.
func TestCellsDoNotControlTheTerminal(t *testing.T) {
	t.Parallel()
	b := New()
	pod := podOf("web-0", "new\x1b[2J")
	b.Update(pod, Progress{Containers: []string{"app"}, Old: map[string]string{"app": "containerd://1\n2"}, State: "blocked: \x1b[2JOh\nno", Ended: true, Failed: true}, after(1))
	lines := b.Lines(console.Colour(true), 119, 23)
	if len(lines) != 2 || strings.Contains(strings.Join(lines, ""), "\n") || strings.Contains(lines[1], "\x1b[2J") || !strings.HasSuffix(lines[1], "\x1b[31mblocked: [2JOh no\x1b[0m") {
		t.Errorf("%q", lines)
	}
}

// With more rows than lines a line says how many are left out, and failures are among those that are shown.
func TestTableHasNoMoreLinesThanTheTerminal(t *testing.T) {
	t.Parallel()
	b := New()
	for i := range 12 {
		r := requestOf(fmt.Sprintf("web-%02d", i), v1beta1.ContainerRecreateRequestSucceeded, "containerd://x")
		outcome := crr.Outcome{}
		if i == 3 {
			outcome = crr.Outcome{Reason: crr.ReasonStopFailed}
		}
		crr.Complete(&r.Status, outcome, 1, after(float64(i)))
		b.Request(r, after(float64(i)))
	}
	for most, want := range map[int]string{
		13: "POD web-00 web-01 web-02 web-03 web-04 web-05 web-06 web-07 web-08 web-09 web-10 web-11",
		12: "POD web-02 web-03 web-04 web-05 web-06 web-07 web-08 web-09 web-10 web-11 ... and 2 more",
		5:  "POD web-03 web-10 web-11 ... and 9 more",
		3:  "POD web-03 ... and 11 more",
	} {
		var got []string
		for _, line := range b.Lines(console.Colour(false), 79, most) {
			if name, _, found := strings.Cut(line, " "); found && name != "..." {
				line = name
			}
			got = append(got, line)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%d lines: %q, want %q", most, text, want)
		}
	}
}
