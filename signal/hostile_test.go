package signal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/procfs"
)

// The candidates are listed, but their number and text are bounded, and the text is quoted.
func TestAmbiguousErrorIsBoundedAndQuoted(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	for pid := 2; pid < 40; pid++ {
		tree.Put(procfs.Process{PID: pid, Comm: "evil\n2026", Cmdline: "\x1b[2Jevil\n" + strings.Repeat("é", 4000) + "\x00"})
	}
	_, err := open(t, tree.Root).Find(t.Context(), signal.Selector{CmdlineContains: "evil"})
	if err == nil {
		t.Fatal("no error")
	}
	msg := err.Error()
	if len(msg) > 2500 || strings.ContainsAny(msg, "\n\x1b") || !strings.Contains(msg, "38 processes match") || !strings.Contains(msg, "33 more") {
		t.Errorf("message of %d bytes: %q", len(msg), msg)
	}
}

func TestFindWithMegabyteCommandLine(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	long := "big " + strings.Repeat("x", 1<<20)
	tree.Put(procfs.Process{PID: 2, Comm: "big", Cmdline: long})
	tree.Put(procfs.Process{PID: 3, Comm: "padded", Cmdline: "padded" + strings.Repeat("\x00", 100<<10)})
	tree.Put(procfs.Process{PID: 4, Comm: "late", Cmdline: strings.Repeat("y", 64<<10) + "needle"})
	fs := open(t, tree.Root)
	tests := map[string]struct {
		sel  signal.Selector
		want any
	}{
		"prefix of a long line":               {signal.Selector{CmdlinePrefix: "big xxx"}, []int{2}},
		"title of a long line":                {signal.Selector{Title: "big"}, []int{2}},
		"exact against the cut line":          {signal.Selector{Cmdline: long[:16<<10]}, "not found"},
		"exact against a padded line":         {signal.Selector{Cmdline: "padded"}, []int{3}},
		"regexp behind the first read":        {signal.Selector{CmdlineRegexp: "needle$"}, []int{4}},
		"prefix longer than the first read":   {signal.Selector{CmdlinePrefix: strings.Repeat("y", 10<<10)}, []int{4}},
		"title ends where the first read did": {signal.Selector{Title: strings.Repeat("y", 4<<10)}, "not found"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, pidsOf(fs.Find(t.Context(), tt.sel))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A process that ends while it is read leaves some of its files; the search goes on.
func TestFindPassesOverTheVanished(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"stat", "status", "cmdline", "exe"} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			tree := procfs.NewTree(t)
			for pid := 2; pid < 5; pid++ {
				tree.Put(procfs.Process{PID: pid, Comm: "app", Cmdline: "app\x00", Exe: "/app"})
			}
			if err := os.Remove(filepath.Join(tree.Root, "3", missing)); err != nil {
				t.Fatal(err)
			}
			got := pidsOf(open(t, tree.Root).Find(t.Context(), signal.Selector{Exe: "/app", Title: "app", Choice: signal.All}))
			if diff := cmp.Diff([]int{2, 4}, got); diff != "" {
				t.Errorf("without %s (-want +got):\n%s", missing, diff)
			}
		})
	}
}

func TestFindAmongTenThousand(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Put(procfs.Process{PID: 2, PPID: 1, Comm: "worker", Cmdline: "worker\x00"})
	many := 10_000
	if testing.Short() {
		many = 1000
	}
	for pid := 3; pid < many; pid++ {
		tree.Twin(pid, 2)
	}
	tree.Put(procfs.Process{PID: 32_000, Comm: "app", Cmdline: "app\x00"})
	fs := open(t, tree.Root)
	if diff := cmp.Diff([]int{32_000}, pidsOf(fs.Find(t.Context(), signal.Selector{Title: "app"}))); diff != "" {
		t.Errorf("one in many (-want +got):\n%s", diff)
	}
	if got := pidsOf(fs.Find(t.Context(), signal.Selector{Comm: "worker", Choice: signal.Parent})); got != fmt.Sprintf("ambiguous: %d", many-2) {
		t.Errorf("siblings have parent %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fs.Find(ctx, signal.Selector{Title: "app"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: err = %v", err)
	}
}
