package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/board"
	"github.com/refit-project/refit/test/kit/screen"
)

// thirty shows the restart of thirty pods of a Deployment, ten at a time, on a terminal, and stops after so many of the three tens; at the
// end the table stays.
func thirty(output *console.Output, tens int) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(ten, second int) time.Time { return noon.Add(time.Duration(10*ten+second) * time.Second) }
	l := &live{restarter: &restarter{Config: Config{Output: output}}, board: board.New()}
	restarted := func(pods int) {
		text := fmt.Sprintf("%s %d of 30 pods restarted, %d under way, 0 failed: 10 of 30 pods may be unavailable at a time", bar(int32(pods), 30), pods, min(10, 30-pods))
		l.progress(text, pods == 30)
	}
	output.Say("RestartRollout shop-backend-x7k2p: restart container app of 30 pods of deployment/shop-backend")
	restarted(0)
	for ten := range tens {
		var requests []*v1beta1.ContainerRecreateRequest
		for i := range 10 {
			r := &v1beta1.ContainerRecreateRequest{}
			r.Spec.PodName = fmt.Sprintf("shop-backend-97fb7f697-%05d", 10*ten+i)
			r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://0123456789abcdef"}}}
			requests = append(requests, r)
			l.board.Request(r, at(ten, 0))
			l.draw()
		}
		for second, r := range requests {
			r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://0123456789abcdef"}}
			l.board.Request(r, at(ten, 1))
			l.draw()
			if ten == 2 && second == 5 && tens == 3 {
				continue // still under way at the end
			}
			pod := &corev1.Pod{}
			pod.Name = r.Spec.PodName
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://fedcba9876543210", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			l.board.Pod(pod, at(ten, 2))
			crr.Complete(&r.Status, crr.Outcome{}, 1, at(ten, 3))
			l.board.Request(r, at(ten, 3))
			restarted(10*ten + second + 1)
		}
	}
	l.draw()
	output.EndRegion()
}

var times = regexp.MustCompile(`\[ *[0-9]+\.[0-9]s\]`)

func onScreen(lines []string) string {
	return times.ReplaceAllString(strings.Join(lines, "\n"), "[   0.0s]")
}

// The usual size of a terminal is 80 columns and 24 lines: the table is kept up to date in place, and nothing of it is left above it.
func TestTableOfThirtyPodsStaysInPlaceOnAUsualTerminal(t *testing.T) {
	t.Parallel()
	const before = `[   0.0s] RestartRollout shop-backend-x7k2p: restart container app of 30 pods of
 deployment/shop-backend
[   0.0s] [--------------------] 0 of 30 pods restarted, 10 under way, 0 failed:
 10 of 30 pods may be unavailable at a time`
	for name, tt := range map[string]struct {
		tens int
		want string
	}{
		"ten": {1, before + `
POD                           CONTAINER  TERM    START   READY   STATE
shop-backend-97fb7f697-00000  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00001  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00002  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00003  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00004  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00005  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00006  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00007  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00008  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00009  app        1.0s    2.0s    3.0s    restarted
[######--------------] 10 of 30 pods restarted, 10 under way, 0 failed: 10 of …`},
		"thirty": {3, before + `
POD                           CONTAINER  TERM    START   READY   STATE
shop-backend-97fb7f697-00010  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00011  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00012  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00013  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00014  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00020  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00021  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00022  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00023  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00024  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00025  app        1.0s    -       -       starting
shop-backend-97fb7f697-00026  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00027  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00028  app        1.0s    2.0s    3.0s    restarted
shop-backend-97fb7f697-00029  app        1.0s    2.0s    3.0s    restarted
... and 15 more
[####################] 30 of 30 pods restarted, 0 under way, 0 failed: 10 of 3…`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terminal := screen.Open(t, 80, 24)
			thirty(console.NewOutput(terminal.File, true), tt.tens)
			shown := terminal.Close()
			if diff := cmp.Diff(tt.want, onScreen(append(shown.Scrolled(), shown.Lines()...))); diff != "" {
				t.Errorf("on the terminal (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the size, the terminal has one table in the end, on the screen as a whole.
func TestTableLeavesNothingAboveItOnTerminalsOfAnySize(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 10}, {60, 15}, {80, 24}, {120, 24}, {150, 40}, {80, 3}} {
		terminal := screen.Open(t, size[0], size[1])
		thirty(console.NewOutput(terminal.File, true), 3)
		shown := terminal.Close()
		count := func(lines []string, beginning string) (n int) {
			for _, line := range lines {
				if strings.HasPrefix(line, beginning) {
					n++
				}
			}
			return n
		}
		wanted := 1
		if size[1] <= 3 {
			wanted = 0 // there is room for the last lines alone
		}
		if headers, ends := count(shown.Lines(), "POD "), count(shown.Lines(), "[####################]"); headers != wanted || ends != 1 {
			t.Errorf("%v: %d headers, want %d, and %d last lines:\n%s", size, headers, wanted, ends, strings.Join(shown.Lines(), "\n"))
		}
		if above := shown.Scrolled(); count(above, "POD ")+count(above, "shop-")+count(above, "…")+count(above, "[#") > 0 {
			t.Errorf("%v: above the screen:\n%s", size, strings.Join(above, "\n"))
		}
	}
}
