package signal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/procfs"
)

const masterTitle = "nginx: master process nginx"

var (
	appID   = strings.Repeat("a1", 32)
	otherID = strings.Repeat("b2", 32)
)

func inContainer(id string) string { return "0::/../cri-containerd-" + id + ".scope\n" }

func container(id string) identity.ContainerID {
	return identity.ContainerID{Runtime: "containerd", ID: id}
}

func open(t *testing.T, root string) *signal.FS {
	t.Helper()
	fs, err := signal.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// pidsOf turns an answer into what tables compare: PIDs, or the kind of the error.
func pidsOf(found []signal.Process, err error) any {
	var ambiguous *signal.AmbiguousError
	switch {
	case errors.As(err, &ambiguous):
		return fmt.Sprintf("ambiguous: %d", len(ambiguous.Candidates))
	case errors.Is(err, signal.ErrNotFound):
		return "not found"
	case err != nil:
		return err.Error()
	}
	pids := []int{}
	for _, p := range found {
		pids = append(pids, p.PID)
	}
	return pids
}

// The kernel marks an executable that was replaced, for example by an update of a package in the container.
func TestProcessIsFoundByItsExecutableAlsoWhenThatWasReplaced(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Self(50)
	for pid, exe := range map[int]string{2: "/app (deleted)", 3: "/app2 (deleted)", 4: "/other"} {
		tree.Put(procfs.Process{PID: pid, Start: 100, Comm: "app", Cmdline: "app\x00", Exe: exe})
	}
	if diff := cmp.Diff(any([]int{2}), pidsOf(open(t, tree.Root).Find(t.Context(), signal.Selector{Exe: "/app"}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Safe process targeting and process selectors on a captured nginx, its workers and three impostors.
func TestProcessSelectorsInACapturedTree(t *testing.T) {
	t.Parallel()
	archive, err := os.ReadFile("testdata/nginx.txtar")
	if err != nil {
		t.Fatal(err)
	}
	fs := open(t, procfs.Extract(t, archive))
	tests := map[string]struct {
		sel  signal.Selector
		want any
	}{
		"title with a sleep of the same title":  {signal.Selector{Title: masterTitle}, "ambiguous: 2"},
		"title and comm":                        {signal.Selector{Title: masterTitle, Comm: "nginx"}, []int{2}},
		"title and executable":                  {signal.Selector{Title: masterTitle, Exe: "/usr/sbin/nginx"}, []int{2}},
		"title, the oldest":                     {signal.Selector{Title: masterTitle, Choice: signal.Oldest}, []int{2}},
		"title, the newest":                     {signal.Selector{Title: masterTitle, Choice: signal.Newest}, []int{6}},
		"title ends inside a word":              {signal.Selector{Title: "nginx: mas"}, "not found"},
		"workers by padded title":               {signal.Selector{Title: "nginx: worker process", Choice: signal.All}, []int{4, 5}},
		"comm of the group":                     {signal.Selector{Comm: "nginx"}, "ambiguous: 3"},
		"comm, the parent":                      {signal.Selector{Comm: "nginx", Choice: signal.Parent}, []int{2}},
		"comm with parenthesis and newline":     {signal.Selector{Comm: "a) S 1 1\n(b"}, []int{8}},
		"command line, exact":                   {signal.Selector{Cmdline: masterTitle + " -c /etc/nginx/nginx.conf -g daemon off;"}, []int{2}},
		"command line, exact but longer":        {signal.Selector{Cmdline: masterTitle + " -c"}, "not found"},
		"command line, prefix":                  {signal.Selector{CmdlinePrefix: "nginx: mas", Choice: signal.All}, []int{2, 6}},
		"command line, part: also of shells":    {signal.Selector{CmdlineContains: masterTitle}, "ambiguous: 3"},
		"command line, regexp":                  {signal.Selector{CmdlineRegexp: `^nginx: .* off;$`}, []int{2}},
		"UID of the workers":                    {signal.Selector{UID: new(33), Choice: signal.All}, []int{4, 5}},
		"PID 1 is never meant":                  {signal.Selector{Comm: "bash", Choice: signal.All}, []int{7}},
		"two heads have no parent":              {signal.Selector{CmdlineContains: "nginx: master", Choice: signal.Parent}, "ambiguous: 3"},
		"nothing":                               {signal.Selector{Comm: "apache2"}, "not found"},
		"executable of the interpreter, a link": {signal.Selector{Exe: "/usr/bin/bash"}, []int{7}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pidsOf(fs.Find(t.Context(), tt.sel))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Find(%s) (-want +got):\n%s", tt.sel, diff)
			}
		})
	}
}

// Other processes in a pod's shared PID namespace are not selected.
func TestProcessSelectorsInASharedNamespace(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Self(50)
	for _, p := range []procfs.Process{
		{PID: 1, Comm: "pause", Cmdline: "/pause\x00", Cgroup: inContainer(strings.Repeat("0f", 32))},
		{PID: 2, Comm: "kthreadd", Flags: 0x00200000, Start: 1},
		{PID: 7, Start: 100, Comm: "app", Cmdline: "/app\x00serve\x00", Cgroup: inContainer(appID)},
		{PID: 8, PPID: 7, Start: 101, Comm: "app", Cmdline: "/app\x00worker\x00", Cgroup: inContainer(appID), UID: 101},
		{PID: 9, Start: 900, Comm: "sh", Cmdline: "sh\x00-c\x00cat /app serve\x00", Cgroup: inContainer(appID)},
		{PID: 20, Start: 120, Comm: "app", Cmdline: "/app\x00serve\x00", Cgroup: inContainer(otherID)},
		{PID: 21, Start: 121, Comm: "app", State: 'Z', Cgroup: inContainer(appID)},
		{PID: 22, Start: 122, Comm: "pause", Cmdline: "/usr/bin/pause\x00", Cgroup: inContainer(strings.Repeat("0e", 32))},
		{PID: 30, Start: 130, Comm: "confused", Cgroup: "2:pids:/" + appID + "\n1:cpu:/" + otherID + "\n"},
		{PID: 50, Start: 50, Comm: "refit-sidecar", Cmdline: "/refit-sidecar\x00", Cgroup: "0::/\n"},
	} {
		tree.Put(p)
	}
	fs := open(t, tree.Root)
	tests := map[string]struct {
		sel  signal.Selector
		want any
	}{
		"container, all, no zombie":              {signal.Selector{Container: container(appID), Choice: signal.All}, []int{7, 8, 9}},
		"init of a container is the oldest":      {signal.Selector{Container: container(appID), Choice: signal.Oldest}, []int{7}},
		"an exec'd shell is a second head":       {signal.Selector{Container: container(appID), Choice: signal.Parent}, "ambiguous: 3"},
		"same title, distinguished by container": {signal.Selector{Title: "/app serve", Container: container(otherID)}, []int{20}},
		"program, not an argument like it":       {signal.Selector{Program: "app serve", Container: container(appID)}, []int{7}},
		"same title in two containers":           {signal.Selector{Title: "/app serve"}, "ambiguous: 2"},
		"pause is not found by its name":         {signal.Selector{Comm: "pause", Choice: signal.All}, "not found"},
		"pause is not found by its UID":          {signal.Selector{UID: new(0), Choice: signal.All}, []int{7, 9, 20, 30}},
		"PID 1 in the container asked for":       {signal.Selector{Container: container(strings.Repeat("0f", 32))}, []int{1}},
		"never ourselves":                        {signal.Selector{Comm: "refit-sidecar"}, "not found"},
		"never ourselves by regexp":              {signal.Selector{CmdlineRegexp: "refit"}, "not found"},
		"kernel threads":                         {signal.Selector{Comm: "kthreadd"}, "not found"},
		"a process of two containers is none":    {signal.Selector{Comm: "confused", Container: container(appID)}, "not found"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pidsOf(fs.Find(t.Context(), tt.sel))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Find(%s) (-want +got):\n%s", tt.sel, diff)
			}
		})
	}
}

func TestProcessesListsSandboxAndContainers(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Put(procfs.Process{PID: 1, Comm: "pause", Cmdline: "/pause\x00"})
	tree.Put(procfs.Process{PID: 7, PPID: 1, Start: 100, UID: 101, Comm: "app", Cmdline: "/app\x00-x\x00", Cgroup: inContainer(appID)})
	got, err := open(t, tree.Root).Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []signal.Process{
		{PID: 1, Comm: "pause", Title: "/pause", Sandbox: true},
		{PID: 7, PPID: 1, Start: 100, UID: 101, Comm: "app", Title: "/app -x", Container: appID},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Processes (-want +got):\n%s", diff)
	}
}

// An empty processName must not mean every process.
func TestSelectorReportsAllFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sel  signal.Selector
		want []string
	}{
		"empty":          {signal.Selector{}, []string{"no condition set"}},
		"choice only":    {signal.Selector{Choice: signal.All}, []string{"no condition set"}},
		"unknown choice": {signal.Selector{Comm: "x", Choice: 9}, []string{"choice 9"}},
		"everything at once": {
			signal.Selector{Comm: "sixteen-bytes-ab", Exe: "nginx", UID: new(-1), CmdlineRegexp: "(", Title: "a\x00b"},
			[]string{"the kernel keeps 15", "not an absolute path", "UID -1", "missing closing", "NUL"},
		},
		"endless pattern": {signal.Selector{Cmdline: strings.Repeat("x", 16<<10+1)}, []string{"longer than 16384"}},
		"user of nobody":  {signal.Selector{UID: new(1<<32 - 1)}, []string{"out of range"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.sel.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestSelectorsAtTheLimits(t *testing.T) {
	t.Parallel()
	for name, sel := range map[string]signal.Selector{
		"longest name": {Comm: "fifteen-bytes-a"}, "longest pattern": {CmdlineContains: strings.Repeat("x", 16<<10)},
		"root": {UID: new(0)}, "last user": {UID: new(1<<32 - 2)}, "a container alone": {Container: container(appID)}, "the root folder": {Exe: "/"},
	} {
		if err := sel.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// They may have started within the same tick of the kernel's clock: the PID decides then.
func TestOldestAndNewestOfOneMoment(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Self(50)
	for _, pid := range []int{8, 7, 9} {
		tree.Put(procfs.Process{PID: pid, Start: 100, Comm: "app", Cmdline: "app\x00"})
	}
	for choice, want := range map[signal.Choice]int{signal.Oldest: 7, signal.Newest: 9} {
		if diff := cmp.Diff(any([]int{want}), pidsOf(open(t, tree.Root).Find(t.Context(), signal.Selector{Comm: "app", Choice: choice}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", choice, diff)
		}
	}
}

func TestNotFoundSaysWhatMayHideTheProcess(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Put(procfs.Process{PID: 2, Comm: "app"})
	_, err := open(t, tree.Root).Find(t.Context(), signal.Selector{Comm: "app", Container: container(appID)})
	if !errors.Is(err, signal.ErrNotFound) || !strings.Contains(err.Error(), "cgroup path") {
		t.Errorf("err = %v, want a word on cgroup paths", err)
	}
}

func TestNewRefusesWhatIsNoProc(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{file, file + "-missing"} {
		if _, err := signal.New(root); err == nil {
			t.Errorf("New(%s) took it", root)
		}
	}
}

func TestParseChoice(t *testing.T) {
	t.Parallel()
	for c := signal.Only; c <= signal.All; c++ {
		if got, err := signal.ParseChoice(c.String()); err != nil || got != c {
			t.Errorf("ParseChoice(%q) = %v, %v", c, got, err)
		}
	}
	if got, err := signal.ParseChoice(""); err != nil || got != signal.Only {
		t.Errorf("empty: %v, %v", got, err)
	}
	if _, err := signal.ParseChoice("any"); err == nil {
		t.Error("any: no error")
	}
}
