package signal_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/procfs"
)

// nginx's master forks workers at each reload. A worker has the title of the master until it sets its own, seen as a refused reload on a
// busy machine: "2 processes match, exactly one is wanted".
func TestAProcessThatHasJustBeenForkedIsWaitedFor(t *testing.T) {
	t.Parallel()
	const line = masterTitle + "\x00"
	for name, tt := range map[string]struct {
		parent int
		choice signal.Choice
		after  time.Duration // when the second process has set its own title
		want   string
		within [2]time.Duration
	}{
		"a worker":                      {10, signal.Only, 500 * time.Millisecond, "[10]", [2]time.Duration{500 * time.Millisecond, time.Second}},
		"a child that keeps the title":  {10, signal.Only, time.Hour, "ambiguous: 2", [2]time.Duration{2 * time.Second, 3 * time.Second}},
		"another program of this title": {1, signal.Only, time.Hour, "ambiguous: 2", [2]time.Duration{}},
		"all are wanted":                {10, signal.All, time.Hour, "[10 11]", [2]time.Duration{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := procfs.NewTree(t)
			tree.Self(50)
			tree.Put(procfs.Process{PID: 10, PPID: 1, Start: 100, Comm: "nginx", Cmdline: line})
			worker := procfs.Process{PID: 11, PPID: tt.parent, Start: 200, Comm: "nginx", Cmdline: line}
			tree.Put(worker)
			fs := open(t, tree.Root)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				go func() {
					select {
					case <-time.After(tt.after):
						worker.Cmdline = "nginx: worker process\x00"
						tree.Put(worker)
					case <-t.Context().Done():
					}
				}()
				got := fmt.Sprint(pidsOf(fs.Find(t.Context(), signal.Selector{Title: masterTitle, Choice: tt.choice})))
				if took := time.Since(began); got != tt.want || took < tt.within[0] || took > tt.within[1] {
					t.Errorf("%s after %s, want %s between %s and %s", got, took, tt.want, tt.within[0], tt.within[1])
				}
			})
		})
	}
}
